// SPDX-License-Identifier: Apache-2.0
#include "perf/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace memspan::perf {
namespace {

std::vector<double> ratios_of(const Figures& here, const Figures& there, Pairing pairing) {
  if (pairing == Pairing::kSaved) return {there.ns.p50 > 0 ? here.ns.p50 / there.ns.p50 : 0};
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(here.medians.size(), there.medians.size()); ++i)
    if (there.medians[i] > 0) ratios.push_back(here.medians[i] / there.medians[i]);
  std::sort(ratios.begin(), ratios.end());
  return ratios;
}

double machine_ratio(const Run& here, const Run& there, const Figures& row) {
  const Test* const test = find_test(row.test);
  if (test == nullptr) return 0;
  const double one = here.baseline(*test, row.bytes);
  const double other = there.baseline(*test, row.bytes);
  return one > 0 && other > 0 ? one / other : 0;
}

// All that may change figures, and need not.
Facts settings(const Run& run) {
  Facts all = run.variables;
  if (!run.hosts.empty()) all.emplace_back("hosts", run.hosts);
  return all;
}

std::string told(const Facts& facts, const std::string& name) {
  for (const auto& [what, value] : facts)
    if (what == name) return fmt::format("\"{}\"", value);
  return "not set";
}

}  // namespace

std::vector<Ratio> compare(const Run& here, const Run& there, Pairing pairing) {
  std::vector<Ratio> all;
  for (const Figures& one : here.figures) {
    const Figures* const other = there.find(one.test, one.bytes);
    if (other == nullptr) continue;
    const std::vector<double> ratios = ratios_of(one, *other, pairing);
    if (ratios.empty()) continue;
    all.push_back({one.test, one.bytes, median(ratios), percentile(ratios, 0.25),
                   percentile(ratios, 0.75), machine_ratio(here, there, one)});
  }
  return all;
}

Status check_comparable(const Run& here, const Run& saved) {
  std::string unlike;
  const auto check = [&](std::string_view what, const auto& one, const auto& other) {
    if (one != other)
      unlike += fmt::format("{}{}: {} here and {} in the saved run", unlike.empty() ? "" : "; ",
                            what, one, other);
  };
  const auto hosts = [](const Run& run) { return std::string(run.one_host ? "one" : "several"); };
  check("PEs (-n)", here.pes, saved.pes);
  check("hosts (--simulate-hosts, --hosts)", hosts(here), hosts(saved));
  if (saved.window != 0) check("--window", here.window, saved.window);
  if (saved.batch != 0) check("--batch", here.batch, saved.batch);
  if (unlike.empty()) return Status::ok();
  return {Code::kInvalidArgument,
          "the runs measure different things, so that their ratios mean nothing: " + unlike};
}

std::vector<std::string> notes_on(const Run& here, const Run& there) {
  if (there.window == 0)
    return {
        "not known of the other run, which an earlier memspan-perf saved: --window, --batch, hosts "
        "and variables; if they differed, the ratios mean nothing"};
  std::vector<std::string> notes;
  const Facts one = settings(here);
  const Facts other = settings(there);
  std::set<std::string> names;
  for (const Facts* facts : {&one, &other})
    for (const auto& [name, value] : *facts) names.insert(name);
  for (const std::string& name : names)
    if (told(one, name) != told(other, name))
      notes.push_back(
          fmt::format("{}: {} here, {} there", name, told(one, name), told(other, name)));
  return notes;
}

json::Value to_json(const std::vector<Ratio>& ratios) {
  json::Value all{json::Value::Array()};
  for (const Ratio& one : ratios) {
    json::Value row = json::Value()
                          .set("test", one.test)
                          .set("bytes", one.bytes)
                          .set("ratio", one.middle)
                          .set("quartiles", json::Value().add(one.low).add(one.high));
    if (one.machine > 0) row.set("baseline_ratio", one.machine);
    all.add(std::move(row));
  }
  return all;
}

}  // namespace memspan::perf
