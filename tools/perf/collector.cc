// SPDX-License-Identifier: Apache-2.0
#include "perf/collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace memspan::perf {
namespace {

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

Status Collector::take(const json::Value& event) {
  const std::string& kind = event["event"].text();
  if (kind == "start") {
    Start start;
    MEMSPAN_TRY(json::read(event, start), "the job's start");
    run_.library = start.library;
    run_.pes = start.pes;
    run_.one_host = start.one_host;
    baselines_.push_back(std::move(start.baselines));
  } else if (kind == "row") {
    Row row;
    MEMSPAN_TRY(json::read(event, row), "a row of the job");
    add(row);
  } else if (kind == "end") {
    ++run_.rounds;
  } else {
    return {Code::kInvalidArgument, fmt::format("there is no event \"{}\"", kind)};
  }
  return Status::ok();
}

void Collector::add(const Row& row) {
  auto place = std::find_if(pooled_.begin(), pooled_.end(), [&](const Pooled& one) {
    return one.test == row.test && one.bytes == row.bytes;
  });
  if (place == pooled_.end()) {
    pooled_.push_back({.test = row.test, .bytes = row.bytes, .ns = {}, .medians = {}});
    place = pooled_.end() - 1;
  }
  place->batch = row.batch;
  place->medians.push_back(median(row.ns));
  place->ns.insert(place->ns.end(), row.ns.begin(), row.ns.end());
}

Run Collector::finish(std::string command, const Plan& plan, std::string hosts) const {
  Run run = run_;
  run.command = std::move(command);
  run.window = plan.window;
  run.batch = plan.batch;
  run.hosts = std::move(hosts);
  run.when = time_now();
  run.machine = describe_machine();
  run.variables = set_variables();
  run.baselines = medians_of(baselines_);
  for (const Pooled& one : pooled_)
    run.figures.push_back({one.test, one.bytes, one.batch, summarize(one.ns), one.medians});
  return run;
}

}  // namespace memspan::perf
