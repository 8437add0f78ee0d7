// SPDX-License-Identifier: Apache-2.0
#include "perf/plots.h"

#include <fmt/format.h>

#include <utility>

namespace memspan::perf {
namespace {

// A group as a heading.
std::string_view title_of(std::string_view group) {
  constexpr std::pair<std::string_view, std::string_view> kTitles[] = {
      {"rma", "puts, gets and signals"},
      {"collectives", "collectives of OpenSHMEM"},
      {"groups", "collectives of ordinary memory"},
      {"pools", "pools (Big Memory)"}};
  for (const auto& [name, title] : kTitles)
    if (name == group) return title;
  return group;
}

// The drawn value of a time: itself, or its speed.
double drawn(const Test& test, std::size_t bytes, double ns) {
  return test.figure == Figure::kBandwidth ? static_cast<double>(bytes) / ns : ns;
}

Series series_of(const Run& run, const Test& test, Look look, std::string name) {
  Series series{.name = std::move(name), .look = look};
  const bool has_band = look == Look::kHere && test.figure == Figure::kLatency;
  for (const Figures* one : run.of(test.name))
    if (one->bytes > 0 && one->ns.p50 > 0)
      series.points.push_back({static_cast<double>(one->bytes),
                               drawn(test, one->bytes, one->ns.p50),
                               has_band && one->ns.has(0.99) ? one->ns.p99 : 0});
  return series;
}

Series baseline_of(const Run& run, const Test& test) {
  Series series{.name = run.baseline_name(test) + " of this machine", .look = Look::kBaseline};
  for (const Figures* one : run.of(test.name))
    if (const double ns = run.baseline(test, one->bytes); ns > 0)
      series.points.push_back({static_cast<double>(one->bytes), drawn(test, one->bytes, ns)});
  return series;
}

NamedPlot line_plot(const Test& test, const Run& here, const Run* there, Place place) {
  const bool is_speed = test.figure == Figure::kBandwidth;
  LinePlot plot{.title = fmt::format("{} ({} PEs)", test.name, here.pes),
                .x_label = "size",
                .y_label = is_speed ? "bandwidth" : "time of one operation",
                .y = is_speed ? Unit::kSpeed : Unit::kTime};
  plot.series.push_back(
      series_of(here, test, Look::kHere,
                is_speed ? std::string(there == nullptr ? "median" : "here")
                         : fmt::format("{}, band to p99", there == nullptr ? "median" : "here")));
  if (there != nullptr && !there->of(test.name).empty())
    plot.series.push_back(series_of(*there, test, Look::kThere, "the other"));
  if (Series baseline = baseline_of(here, test); !baseline.points.empty())
    plot.series.push_back(std::move(baseline));
  return {std::string(test.name), std::string(title_of(test.group)), to_svg(plot, place)};
}

DotRow dot_row(const Run& run, const Test& test, const Figures& one, Look look) {
  const double baseline = run.baseline(test, one.bytes);
  return {.name = look == Look::kThere ? "the other" : std::string(test.name),
          .look = look,
          .p50 = one.ns.p50,
          .p99 = one.ns.has(0.99) ? one.ns.p99 : 0,
          .p999 = one.ns.has(0.999) ? one.ns.p999 : 0,
          .baseline = look == Look::kHere ? baseline : 0};
}

}  // namespace

std::vector<NamedPlot> plots_of(const Run& here, const Run* there, Place place) {
  std::vector<NamedPlot> plots;
  DotPlot single{.title = fmt::format("Single operations ({} PEs)", here.pes),
                 .x_label = "time of one operation",
                 .baseline_name = here.one_host ? "a cache line's way between the cores"
                                                : "a TCP socket of the loopback"};
  for (const Test& test : all_tests()) {
    const auto rows = here.of(test.name);
    if (rows.empty() || test.figure == Figure::kRate) continue;
    if (test.has_sizes) {
      plots.push_back(line_plot(test, here, there, place));
      continue;
    }
    single.rows.push_back(dot_row(here, test, *rows.front(), Look::kHere));
    if (there == nullptr) continue;
    if (const auto others = there->of(test.name); !others.empty())
      single.rows.push_back(dot_row(*there, test, *others.front(), Look::kThere));
  }
  if (!single.rows.empty())
    plots.insert(plots.begin(), {"single-operations", "single operations", to_svg(single, place)});
  return plots;
}

}  // namespace memspan::perf
