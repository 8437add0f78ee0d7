// SPDX-License-Identifier: Apache-2.0
// The machine's speed without memspan, measured in the same run as the figures beside it. It is not
// a limit. A copy past the caches is faster than memcpy, and a fetch that finds its line in the own
// cache faster than a line's way.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "json/fields.h"

namespace memspan::perf {

// A value; 0 is not measured. Nanoseconds.
struct Baselines {
  double clock = 0;       // reading the clock
  double cache_line = 0;  // a line handed from one core to the other, one way
  double yield = 0;       // from one thread to another of the same core, by sched_yield, one way
  double loopback = 0;    // 8 bytes through a TCP socket of the loopback, one way
  struct Copy {
    std::size_t bytes;
    double ns;
  };
  // memcpy from ordinary memory into symmetric memory, both the process's own and warm, by size.
  std::vector<Copy> copies = {};
};

template <typename Field, json::Of<Baselines::Copy> Thing>
void fields(Field& field, Thing& copy) {
  field("bytes", copy.bytes);
  field("ns", copy.ns);
}

template <typename Field, json::Of<Baselines> Thing>
void fields(Field& field, Thing& baselines) {
  field("clock_ns", baselines.clock);
  field("cache_line_ns", baselines.cache_line);
  field("yield_ns", baselines.yield);
  field("loopback_ns", baselines.loopback);
  field("copies", baselines.copies);
}

// On the calling thread, whose core it is, and a second thread of the same core; all but
// `cache_line`. Copies go to `symmetric`, memory of the largest size that has been written to, so
// that its pages are as large as those that puts write to.
Baselines measure_baselines(const std::vector<std::size_t>& sizes, std::byte* symmetric);

// Nanoseconds one way when two processes hand `line` over and back, by plain loads and stores; both
// call it at the same time, one of them as the first, and `line` is 0 before.
enum class Turn { kFirst, kSecond };
double measure_cache_line(std::atomic<std::uint64_t>& line, Turn turn);

}  // namespace memspan::perf
