// SPDX-License-Identifier: Apache-2.0
#include "perf/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "perf/units.h"

namespace memspan::perf {
namespace {

constexpr int kColumn = 11;

// A test as a table of its sizes.
std::string table_of(const Run& run, const Test& test, const std::vector<const Figures*>& rows) {
  const bool has_speed = test.figure != Figure::kLatency;
  const char* const speed = test.figure == Figure::kRate ? "rate" : "bandwidth";
  std::string text = fmt::format("\n{}: {}\n", test.name, test.what);
  if (test.has_sizes) text += fmt::format("{:>{}}", "size", kColumn);
  if (has_speed) text += fmt::format("{:>{}}", speed, kColumn);
  for (const char* const head : {"p50", "p90", "p99", "p99.9", "max"})
    text += fmt::format("{:>{}}", head, kColumn);
  const bool has_baseline =
      test.baseline != Baseline::kNone && run.baseline(test, rows.front()->bytes) > 0;
  const std::string name = run.baseline_name(test);
  const std::size_t width = std::max<std::size_t>(kColumn + 1, name.size() + 2);
  if (has_baseline) text += fmt::format("{:>{}}", name, width);
  text += "\n";
  for (const Figures* row : rows) {
    if (test.has_sizes) text += fmt::format("{:>{}}", bytes_text(row->bytes), kColumn);
    if (has_speed)
      text += fmt::format("{:>{}}", figure_text(test, row->bytes, row->ns.p50), kColumn);
    for (const std::string& time : times_of(row->ns)) text += fmt::format("{:>{}}", time, kColumn);
    const double baseline = run.baseline(test, row->bytes);
    const bool is_speed = test.figure == Figure::kBandwidth;
    if (has_baseline)
      text += fmt::format("{:>{}}",
                          is_speed ? figure_text(test, row->bytes, baseline) : time_text(baseline),
                          width);
    text += "\n";
  }
  return text;
}

std::string baselines_text(const Run& run) {
  const Baselines& baselines = run.baselines;
  std::string text = "\nwhat the machine does without memspan, measured in the same run\n";
  const auto line = [&](std::string_view what, double ns) {
    if (ns > 0) text += fmt::format("  {:<48} {}\n", what, time_text(ns));
  };
  line("a cache line from one core to the other", baselines.cache_line);
  line("from one thread to another by sched_yield", baselines.yield);
  line("8 bytes through a TCP socket of the loopback", baselines.loopback);
  line("reading the clock", baselines.clock);
  if (!baselines.copies.empty()) {
    const Baselines::Copy& last = baselines.copies.back();
    text += fmt::format("  {:<48} {}\n", fmt::format("memcpy of {}", bytes_text(last.bytes)),
                        speed_text(static_cast<double>(last.bytes) / last.ns));
  }
  return text;
}

}  // namespace

std::string to_text(const Run& run) {
  std::string text = fmt::format("memspan-perf, {} PEs{}, {} round{}, {}\n{}\n", run.pes,
                                 run.one_host ? " on one host" : " on several hosts", run.rounds,
                                 run.rounds == 1 ? "" : "s", run.when, run.library);
  std::string variables;
  for (const auto& [name, value] : run.variables)
    variables += fmt::format("{}{}={}", variables.empty() ? "" : ", ", name, value);
  if (!variables.empty()) text += fmt::format("set, and may change figures: {}\n", variables);
  for (const Test& test : all_tests())
    if (const auto rows = run.of(test.name); !rows.empty()) text += table_of(run, test, rows);
  return text + baselines_text(run);
}

std::string to_text(const std::vector<Ratio>& ratios, const Run& here, const Run& there,
                    Pairing pairing) {
  const bool is_alternating = pairing == Pairing::kAlternating;
  std::string text =
      fmt::format("\ntime here / time there, median{}\n  here:  {}, {}\n  there: {}, {}\n",
                  is_alternating ? " of the rounds (quartiles)"
                                 : " (the same of what the machine does without memspan)",
                  here.library, here.when, there.library, there.when);
  for (const std::string& note : notes_on(here, there)) text += fmt::format("  note: {}\n", note);
  for (const Ratio& one : ratios) {
    text += fmt::format("  {:<22}{:>10}  {:.3f}", one.test, bytes_text(one.bytes), one.middle);
    if (is_alternating)
      text += fmt::format(" ({:.3f} to {:.3f})", one.low, one.high);
    else if (one.machine > 0)
      text += fmt::format(" ({} {:.3f})", here.baseline_name(*find_test(one.test)), one.machine);
    text += "\n";
  }
  if (ratios.empty()) text += "  nothing that both measured\n";
  return text;
}

std::string list_text(const std::vector<std::string>& tests) {
  std::string text;
  std::string_view group;
  for (const std::string& name : tests) {
    const Test& test = *find_test(name);
    if (test.group != group) text += fmt::format("{}{}\n", text.empty() ? "" : "\n", test.group);
    group = test.group;
    text += fmt::format("  {:<22}{}\n", test.name, test.what);
  }
  return text;
}

}  // namespace memspan::perf
