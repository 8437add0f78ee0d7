// SPDX-License-Identifier: Apache-2.0
#include "perf/run.h"

#include <algorithm>

namespace memspan::perf {

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

}  // namespace memspan::perf
