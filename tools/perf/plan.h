// SPDX-License-Identifier: Apache-2.0
// What a job of memspan-perf is to measure: decided by the command line, carried to its processes
// as JSON in one argument.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "json/fields.h"

namespace memspan::perf {

// A value.
struct Plan {
  std::vector<std::string> tests = {};
  std::vector<std::size_t> sizes = {};  // bytes, rising
  std::size_t samples = 1000;           // of a row, at most
  double seconds = 0.2;                 // of a row, about
  std::size_t warm_up = 50;             // samples that do not count
  std::size_t window = 64;              // operations between two waits, of bandwidths and rates
  std::size_t batch = 64;               // pieces of a transfer, of batches
  std::string store = {};               // of pools and transfers; empty: one on the loopback
};

template <typename Field, json::Of<Plan> Thing>
void fields(Field& field, Thing& plan) {
  field("tests", plan.tests);
  field("sizes", plan.sizes);
  field("samples", plan.samples);
  field("seconds", plan.seconds);
  field("warm_up", plan.warm_up);
  field("window", plan.window);
  field("batch", plan.batch);
  field("store", plan.store);
}
Result<Plan> plan_from_json(std::string_view text);

// "8:1m" (powers of two), "8:1m:4" (times four), "8,64,1k", or one size. Rising, each 1 byte to
// 1 GiB. kInvalidArgument names what is wrong.
Result<std::vector<std::size_t>> parse_sizes(std::string_view text);

}  // namespace memspan::perf
