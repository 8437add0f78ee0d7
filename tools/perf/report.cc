// SPDX-License-Identifier: Apache-2.0
#include "perf/report.h"

#include <fmt/format.h>

#include "perf/plots.h"
#include "perf/report_style.h"
#include "perf/units.h"

namespace memspan::perf {
namespace {

std::string cell(std::string_view text) {
  return fmt::format("<td>{}</td>", escaped(text));
}

// One of a run's main figures.
std::string card(std::string_view what, std::string_view value, std::string_view beside) {
  return fmt::format(
      "<div class=\"card\"><div class=\"what\">{}</div><div class=\"value\">{}</div><div "
      "class=\"beside\">{}</div></div>\n",
      escaped(what), escaped(value), escaped(beside));
}

std::string cards(const Run& run) {
  std::string html = "<div class=\"cards\">\n";
  int count = 0;
  for (const Test& test : all_tests()) {
    const auto rows = run.of(test.name);
    constexpr int kMost = 8;
    if (rows.empty() || count == kMost) continue;
    // Latencies are those of the smallest size, speeds those of the fastest.
    const Figures* best = rows.front();
    if (test.figure == Figure::kBandwidth)
      for (const Figures* one : rows)
        if (static_cast<double>(one->bytes) * best->ns.p50 >
            static_cast<double>(best->bytes) * one->ns.p50)
          best = one;
    const double baseline = run.baseline(test, best->bytes);
    const std::string beside = baseline > 0 ? fmt::format("{}: {}", run.baseline_name(test),
                                                          figure_text(test, best->bytes, baseline))
                                            : "median";
    html += card(test.has_sizes ? fmt::format("{}, {}", test.name, bytes_text(best->bytes))
                                : std::string(test.name),
                 figure_text(test, best->bytes, best->ns.p50), beside);
    ++count;
  }
  return html + "</div>\n";
}

std::string facts_table(const Run& run) {
  std::string html = "<table class=\"facts\">\n";
  const auto row = [&](std::string_view what, std::string_view value) {
    html += fmt::format("<tr><th scope=\"row\">{}</th>{}</tr>\n", escaped(what), cell(value));
  };
  for (const auto& [what, value] : run.machine) row(what, value);
  row("library", run.library);
  row("memspan", MEMSPAN_VERSION);
  row("PEs", fmt::format("{}{}", run.pes, run.one_host ? ", on one host" : ", on several hosts"));
  if (!run.hosts.empty()) row("hosts", run.hosts);
  row("window", std::to_string(run.window));
  row("batch", std::to_string(run.batch));
  row("rounds", std::to_string(run.rounds));
  for (const auto& [name, value] : run.variables) row(name, value);
  row("command", run.command);
  return html + "</table>\n";
}

std::string baselines_table(const Baselines& baselines) {
  std::string html = "<table class=\"facts\">\n";
  const auto row = [&](std::string_view what, const std::string& value) {
    html += fmt::format("<tr><th scope=\"row\">{}</th>{}</tr>\n", escaped(what), cell(value));
  };
  const auto time = [&](std::string_view what, double ns) {
    if (ns > 0) row(what, time_text(ns));
  };
  time("a cache line from one core to the other", baselines.cache_line);
  time("from one thread to another of a core (sched_yield)", baselines.yield);
  time("8 bytes through a TCP socket of the loopback", baselines.loopback);
  time("reading the clock", baselines.clock);
  for (const Baselines::Copy& copy : baselines.copies)
    row(fmt::format("memcpy of {}", bytes_text(copy.bytes)),
        fmt::format("{}, {}", time_text(copy.ns),
                    speed_text(static_cast<double>(copy.bytes) / copy.ns)));
  return html + "</table>\n";
}

std::string figures_table(const Run& run, const Test& test) {
  const bool has_speed = test.figure != Figure::kLatency;
  const bool has_baseline = test.baseline != Baseline::kNone;
  std::string html = fmt::format(
      "<details open><summary>{} <span class=\"soft\">{}</span></summary><div "
      "class=\"scroll\"><table class=\"figures\"><thead><tr>",
      escaped(test.name), escaped(test.what));
  if (test.has_sizes) html += "<th>size</th>";
  if (has_speed) html += test.figure == Figure::kRate ? "<th>rate</th>" : "<th>bandwidth</th>";
  html += "<th>p50</th><th>p90</th><th>p99</th><th>p99.9</th><th>max</th>";
  if (has_baseline) html += fmt::format("<th>{}</th>", run.baseline_name(test));
  html += "<th>samples</th><th>batch</th></tr></thead><tbody>\n";
  for (const Figures* one : run.of(test.name)) {
    html += "<tr>";
    if (test.has_sizes) html += cell(bytes_text(one->bytes));
    if (has_speed) html += cell(figure_text(test, one->bytes, one->ns.p50));
    for (const std::string& time : times_of(one->ns)) html += cell(time);
    const double baseline = run.baseline(test, one->bytes);
    if (has_baseline) html += cell(baseline > 0 ? figure_text(test, one->bytes, baseline) : "-");
    html += cell(std::to_string(one->ns.samples)) + cell(std::to_string(one->batch)) + "</tr>\n";
  }
  return html + "</tbody></table></div></details>\n";
}

std::string ratio_table(const Run& run, const Compared& compared) {
  const bool is_alternating = compared.pairing == Pairing::kAlternating;
  std::string html = fmt::format(
      "<h2 id=\"comparison\">Comparison</h2>\n<p>Time here over time there: below 1 this run is "
      "faster. Here is <code>{}</code>, the other is <code>{}</code> of {}. {}</p>\n",
      escaped(run.library), escaped(compared.run.library), escaped(compared.run.when),
      is_alternating
          ? "Their jobs alternated; each ratio is of two jobs next to each other, and the "
            "median of the rounds is given with its quartiles."
          : "The other was measured at another time.");
  for (const std::string& note : notes_on(run, compared.run))
    html += fmt::format("<p>Note: {}.</p>\n", escaped(note));
  html +=
      "<details open><summary>Ratios</summary><div class=\"scroll\"><table "
      "class=\"figures\"><thead><tr><th>test</th><th>size</th>"
      "<th>ratio</th><th>quartiles</th><th>the same of the machine without memspan</th>"
      "</tr></thead><tbody>\n";
  for (const Ratio& one : compared.ratios) {
    const char* const mark = one.high < 0.97 ? "better" : one.low > 1.03 ? "worse" : "level";
    html += fmt::format("<tr>{}{}<td class=\"{}\">{:.3f}</td>{}{}</tr>\n", cell(one.test),
                        cell(bytes_text(one.bytes)), mark, one.middle,
                        cell(is_alternating ? fmt::format("{:.3f} to {:.3f}", one.low, one.high)
                                            : std::string("-")),
                        cell(one.machine > 0 ? fmt::format("{:.3f}", one.machine) : "-"));
  }
  return html + "</tbody></table></div></details>\n";
}

}  // namespace

std::string to_html(const Run& run, const std::optional<Compared>& compared) {
  const Run* const there = compared ? &compared->run : nullptr;
  const std::string title = fmt::format("memspan-perf: {} PEs", run.pes);
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta "
      "name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>{}{}</style>\n"
      "</head>\n<body>\n<main>\n<header><h1>memspan-perf</h1>\n<p class=\"soft\">{}, {} PEs{}, {}"
      "</p></header>\n",
      escaped(title), kReportStyle, plot_style(), escaped(run.when), run.pes,
      run.one_host ? " on one host" : " on several hosts",
      escaped(run.machine.empty() ? "" : run.machine.front().second));
  html += "<nav><a href=\"#plots\">Plots</a>";
  if (compared) html += "<a href=\"#comparison\">Comparison</a>";
  html +=
      "<a href=\"#tables\">Tables</a><a href=\"#machine\">Machine</a><a "
      "href=\"#method\">Method</a></nav>\n";
  html += cards(run) + "<h2 id=\"plots\">Plots</h2>\n";
  std::string group;
  for (const NamedPlot& plot : plots_of(run, there, Place::kPage)) {
    if (plot.group != group)
      html += fmt::format("{}<h3>{}</h3>\n<div class=\"plots\">\n", group.empty() ? "" : "</div>\n",
                          escaped(plot.group));
    group = plot.group;
    html += "<figure>" + plot.svg + "</figure>\n";
  }
  if (!group.empty()) html += "</div>\n";
  if (compared) html += ratio_table(run, *compared);
  html += "<h2 id=\"tables\">Tables</h2>\n";
  for (const Test& test : all_tests())
    if (!run.of(test.name).empty()) html += figures_table(run, test);
  html += "<h2 id=\"machine\">Machine</h2>\n<div class=\"pair\"><div><h3>What it is</h3>\n" +
          facts_table(run) +
          "</div><div><h3>What it does without memspan, measured in the same run</h3>\n" +
          baselines_table(run.baselines) + "</div></div>\n";
  return html + std::string(kReportMethod) + "</main>\n</body>\n</html>\n";
}

}  // namespace memspan::perf
