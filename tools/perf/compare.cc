// SPDX-License-Identifier: Apache-2.0
#include "perf/compare.h"

#include <algorithm>
#include <cmath>

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

}  // namespace

std::vector<Ratio> compare(const Run& here, const Run& there, Pairing pairing) {
  std::vector<Ratio> all;
  for (const Figures& one : here.figures) {
    const Figures* const other = there.find(one.test, one.bytes);
    if (other == nullptr) continue;
    const std::vector<double> ratios = ratios_of(one, *other, pairing);
    if (ratios.empty()) continue;
    all.push_back(
        {one.test, one.bytes, median(ratios), percentile(ratios, 0.25), percentile(ratios, 0.75)});
  }
  return all;
}

double machine_ratio(const Run& here, const Run& there) {
  std::vector<double> logarithms;
  const auto add = [&](double one, double other) {
    if (one > 0 && other > 0) logarithms.push_back(std::log(one / other));
  };
  add(here.baselines.cache_line, there.baselines.cache_line);
  for (const Baselines::Copy& copy : here.baselines.copies)
    for (const Baselines::Copy& other : there.baselines.copies)
      if (copy.bytes == other.bytes) add(copy.ns, other.ns);
  return logarithms.empty() ? 0 : std::exp(median(logarithms));
}

json::Value to_json(const std::vector<Ratio>& ratios) {
  json::Value all{json::Value::Array()};
  for (const Ratio& one : ratios)
    all.add(json::Value()
                .set("test", one.test)
                .set("bytes", one.bytes)
                .set("ratio", one.middle)
                .set("quartiles", json::Value().add(one.low).add(one.high)));
  return all;
}

}  // namespace memspan::perf
