// SPDX-License-Identifier: Apache-2.0
// How a figure is taken: what is to be measured and its bare counterpart in turn, each for long
// enough that the clock does not matter.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace bench {

struct Options {
  int repetitions = 9;
  double least_seconds = 0.002;       // of one repetition
  std::size_t memory = 576U << 20;    // of each process, for what is copied
  long cycles = 10000;                // of joining and leaving
  std::vector<int> members = {2, 8};  // of the starts that are timed
};
extern Options options;  // main() sets it, constant from then on

// One line: name, size, lower quartile, unit, least, most, how many. A quartile, for what else the
// machine does can only make a time longer.
void report(const std::string& name, std::size_t size, const char* unit,
            std::vector<double> values);

using Call = std::function<void()>;

// Reports the microseconds of a call of `ours` as `name` and of `bare` as "bare_<name>"; the one
// that goes first changes with every repetition.
void compare(const std::string& name, std::size_t size, const Call& ours, const Call& bare);

// Binds this process to one of the processors; without effect when there is only one.
void bind_to(int processor);

}  // namespace bench
