// SPDX-License-Identifier: Apache-2.0
// Two runs next to each other.
#pragma once

#include <string>
#include <vector>

#include "perf/run.h"

namespace memspan::perf {

// A value: time here over time there, below 1 where this run is faster.
struct Ratio {
  std::string test;
  std::size_t bytes = 0;
  double middle = 0;
  double low = 0;  // quartiles of the rounds; as the middle where there is only one
  double high = 0;
  double machine = 0;  // the same ratio of the row's baseline (Run::baseline()); 0: not known
};

// The kind of the other run. Alternating rounds of both are compared one by one. A saved run is
// from another time, so only its medians are compared.
enum class Pairing { kAlternating, kSaved };
std::vector<Ratio> compare(const Run& here, const Run& there, Pairing pairing);
// kInvalidArgument names what the saved run measured in another way, so that ratios mean nothing.
Status check_comparable(const Run& here, const Run& saved);
// Settings that differ, or are unknown for the other run, and may have changed its figures; a text
// each.
std::vector<std::string> notes_on(const Run& here, const Run& there);

json::Value to_json(const std::vector<Ratio>& ratios);

}  // namespace memspan::perf
