// SPDX-License-Identifier: Apache-2.0
#include "perf/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>
#include <sstream>

namespace memspan::perf {
namespace {

Baselines baselines_from_json(const json::Value& value) {
  Baselines baselines{.clock = value["clock_ns"].number(),
                      .cache_line = value["cache_line_ns"].number(),
                      .yield = value["yield_ns"].number(),
                      .loopback = value["loopback_ns"].number()};
  for (const json::Value& copy : value["copies"].array())
    baselines.copies.push_back(
        {static_cast<std::size_t>(copy["bytes"].number()), copy["ns"].number()});
  return baselines;
}

double median_of(const std::vector<Baselines>& all,
                 const std::function<double(const Baselines&)>& take) {
  std::vector<double> values;
  values.reserve(all.size());
  for (const Baselines& one : all) values.push_back(take(one));
  return median(values);
}

Baselines medians_of(const std::vector<Baselines>& all) {
  if (all.empty()) return {};
  Baselines middle{
      .clock = median_of(all, [](const Baselines& one) { return one.clock; }),
      .cache_line = median_of(all, [](const Baselines& one) { return one.cache_line; }),
      .yield = median_of(all, [](const Baselines& one) { return one.yield; }),
      .loopback = median_of(all, [](const Baselines& one) { return one.loopback; })};
  for (std::size_t i = 0; i < all.front().copies.size(); ++i)
    middle.copies.push_back({all.front().copies[i].bytes, median_of(all, [&](const Baselines& one) {
                               return i < one.copies.size() ? one.copies[i].ns : 0;
                             })});
  return middle;
}

}  // namespace

json::Value to_json(const Baselines& baselines) {
  json::Value copies{json::Value::Array()};
  for (const Baselines::Copy& copy : baselines.copies)
    copies.add(json::Value().set("bytes", copy.bytes).set("ns", copy.ns));
  return json::Value()
      .set("clock_ns", baselines.clock)
      .set("cache_line_ns", baselines.cache_line)
      .set("yield_ns", baselines.yield)
      .set("loopback_ns", baselines.loopback)
      .set("copies", std::move(copies));
}

const Figures* Run::find(std::string_view test, std::size_t bytes) const {
  const auto found = std::find_if(figures.begin(), figures.end(), [&](const Figures& one) {
    return one.test == test && one.bytes == bytes;
  });
  return found == figures.end() ? nullptr : &*found;
}

std::vector<const Figures*> Run::of(std::string_view test) const {
  std::vector<const Figures*> all;
  for (const Figures& one : figures)
    if (one.test == test) all.push_back(&one);
  return all;
}

double Run::baseline(const Test& test, std::size_t bytes) const {
  if (test.baseline == Baseline::kCacheLine)
    return one_host ? baselines.cache_line : baselines.loopback;
  if (test.baseline == Baseline::kCopy)
    for (const Baselines::Copy& copy : baselines.copies)
      if (copy.bytes == bytes) return copy.ns;
  return 0;
}

Status Collector::take(const json::Value& event) {
  const std::string& kind = event["event"].text();
  if (kind == "start") {
    run_.library = event["library"].text();
    run_.pes = static_cast<int>(event["pes"].number());
    run_.one_host = event["one_host"].truth();
    baselines_.push_back(baselines_from_json(event["baselines"]));
  } else if (kind == "row") {
    const std::string& test = event["test"].text();
    const auto bytes = static_cast<std::size_t>(event["bytes"].number());
    auto place = std::find_if(pooled_.begin(), pooled_.end(), [&](const Pooled& one) {
      return one.test == test && one.bytes == bytes;
    });
    if (place == pooled_.end()) {
      pooled_.push_back({.test = test, .bytes = bytes, .ns = {}, .medians = {}});
      place = pooled_.end() - 1;
    }
    std::vector<double> ns;
    for (const json::Value& one : event["ns"].array()) ns.push_back(one.number());
    place->batch = static_cast<std::size_t>(event["batch"].number());
    place->medians.push_back(median(ns));
    place->ns.insert(place->ns.end(), ns.begin(), ns.end());
    ++rows_;
  } else if (kind == "end") {
    ++run_.rounds;
  } else {
    return {Code::kInvalidArgument, fmt::format("there is no event \"{}\"", kind)};
  }
  return Status::ok();
}

Run Collector::finish(std::string command) const {
  Run run = run_;
  run.command = std::move(command);
  run.when = time_now();
  run.machine = describe_machine();
  run.baselines = medians_of(baselines_);
  for (const Pooled& one : pooled_)
    run.figures.push_back({one.test, one.bytes, one.batch, summarize(one.ns), one.medians});
  return run;
}

json::Value to_json(const Run& run) {
  json::Value machine;
  for (const auto& [what, value] : run.machine) machine.set(what, value);
  json::Value figures{json::Value::Array()};
  for (const Figures& one : run.figures) {
    json::Value medians{json::Value::Array()};
    for (const double ns : one.medians) medians.add(ns);
    const Test* test = find_test(one.test);
    json::Value row = json::Value().set("test", one.test).set("bytes", one.bytes);
    row.set("batch", one.batch).set("ns", to_json(one.ns)).set("round_medians_ns", medians);
    if (test != nullptr && test->figure == Figure::kBandwidth)
      row.set("gigabytes_a_second", static_cast<double>(one.bytes) / one.ns.p50);
    if (test != nullptr && test->figure == Figure::kRate)
      row.set("millions_a_second", 1e3 / one.ns.p50);
    if (const double baseline = test == nullptr ? 0 : run.baseline(*test, one.bytes); baseline > 0)
      row.set("baseline_ns", baseline);
    figures.add(std::move(row));
  }
  return json::Value()
      .set("format", kFormat)
      .set("library", run.library)
      .set("when", run.when)
      .set("command", run.command)
      .set("pes", run.pes)
      .set("one_host", run.one_host)
      .set("rounds", run.rounds)
      .set("machine", std::move(machine))
      .set("baselines", to_json(run.baselines))
      .set("figures", std::move(figures));
}

Result<Run> run_from_json(const json::Value& value) {
  if (value["format"].number() != kFormat)
    return Status(Code::kInvalidArgument,
                  fmt::format("it is no run of memspan-perf in format {}", kFormat));
  Run run{.library = value["library"].text(),
          .when = value["when"].text(),
          .command = value["command"].text(),
          .pes = static_cast<int>(value["pes"].number()),
          .one_host = value["one_host"].truth(),
          .rounds = static_cast<std::size_t>(value["rounds"].number()),
          .baselines = baselines_from_json(value["baselines"])};
  for (const auto& [what, text] : value["machine"].object())
    run.machine.emplace_back(what, text.text());
  for (const json::Value& one : value["figures"].array()) {
    Figures figures{.test = one["test"].text(),
                    .bytes = static_cast<std::size_t>(one["bytes"].number()),
                    .batch = static_cast<std::size_t>(one["batch"].number()),
                    .ns = summary_from_json(one["ns"])};
    for (const json::Value& ns : one["round_medians_ns"].array())
      figures.medians.push_back(ns.number());
    run.figures.push_back(std::move(figures));
  }
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
