// SPDX-License-Identifier: Apache-2.0
// A run as JSON and in a file.
#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#include "perf/run.h"

namespace memspan::perf {
namespace {

// With what readers would compute of it.
json::Value to_json(const Run& run, const Figures& one) {
  const Test* const test = find_test(one.test);
  json::Value row = json::written(one);
  if (test == nullptr) return row;
  if (test->figure == Figure::kBandwidth)
    row.set("gigabytes_a_second", static_cast<double>(one.bytes) / one.ns.p50);
  if (test->figure == Figure::kRate) row.set("millions_a_second", 1e3 / one.ns.p50);
  if (const double baseline = run.baseline(*test, one.bytes); baseline > 0)
    row.set("baseline_ns", baseline);
  return row;
}

// With what earlier versions did not save, as not known.
json::Value completed(json::Value run) {
  for (const char* const name : {"window", "batch"})
    if (run[name].is_null()) run.set(name, 0);
  if (run["hosts"].is_null()) run.set("hosts", "");
  if (run["variables"].is_null()) run.set("variables", json::Value::Object());
  return run;
}

}  // namespace

json::Value to_json(const Run& run) {
  json::Value figures{json::Value::Array()};
  for (const Figures& one : run.figures) figures.add(to_json(run, one));
  json::Value all = json::Value().set("format", kFormat);
  const json::Value members = json::written(run);
  for (const auto& [name, value] : members.object())
    all.set(name, name == "figures" ? figures : value);
  return all;
}

Result<Run> run_from_json(const json::Value& value) {
  if (value["format"].number() != kFormat)
    return Status(Code::kInvalidArgument,
                  fmt::format("it is not a run of memspan-perf in format {}", kFormat));
  Run run;
  MEMSPAN_PASS(json::read(completed(value), run));
  return run;
}

Result<Run> load_run(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status::from_errno(path).annotate("reading a saved run");
  std::ostringstream text;
  text << file.rdbuf();
  const auto value = json::parse(text.str());
  if (!value.is_ok()) return Status(Code::kInvalidArgument, path + ": " + value.status().message());
  auto run = run_from_json((*value)["run"].is_null() ? *value : (*value)["run"]);
  if (!run.is_ok()) return run.status().annotate(path);
  return run;
}

Status save_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  return file ? Status::ok() : Status::from_errno("writing " + path);
}

}  // namespace memspan::perf
