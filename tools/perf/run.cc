// SPDX-License-Identifier: Apache-2.0
#include "perf/run.h"

#include <fmt/format.h>

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
  const double line = one_host ? baselines.cache_line : baselines.loopback;
  double copy = 0;
  for (const Baselines::Copy& one : baselines.copies)
    if (one.bytes == bytes) copy = one.ns;
  switch (test.baseline) {
    case Baseline::kNone:
      return 0;
    case Baseline::kCopy:
      return copy;
    case Baseline::kCacheLine:
      return line;
    case Baseline::kCacheLineOrCopy:
      break;
  }
  return line > 0 ? std::max(line, copy) : 0;
}

std::string Run::baseline_name(const Test& test) const {
  const char* const line = one_host ? "cache line" : "TCP socket";
  switch (test.baseline) {
    case Baseline::kNone:
      return "";
    case Baseline::kCopy:
      return "memcpy";
    case Baseline::kCacheLine:
      return line;
    case Baseline::kCacheLineOrCopy:
      break;
  }
  return fmt::format("{}/memcpy", line);
}

}  // namespace memspan::perf
