// SPDX-License-Identifier: Apache-2.0
// Two runs next to each other.
#pragma once

#include <string>
#include <vector>

#include "perf/run.h"

namespace memspan::perf {

// A value: time here over time there, below 1 where this run is quicker.
struct Ratio {
  std::string test;
  std::size_t bytes = 0;
  double middle = 0;
  double low = 0;  // quartiles of the rounds; as the middle where there is only one
  double high = 0;
};

// What the other run is. Rounds of both that alternated are compared one by one; of a saved run,
// which another time's machine made, only the medians are.
enum class Pairing { kAlternating, kSaved };
std::vector<Ratio> compare(const Run& here, const Run& there, Pairing pairing);
// The machine's own figures as the same kind of ratio: how far the machine is the same.
// 0 where one is not known.
double machine_ratio(const Run& here, const Run& there);

json::Value to_json(const std::vector<Ratio>& ratios);

}  // namespace memspan::perf
