// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them: three digits and a unit.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "perf/run.h"

namespace memspan::perf {

std::string time_text(double ns);  // "1.23 us"
// p50, p90, p99, p99.9 and the longest; "-" for a percentile that there are too few samples for.
std::array<std::string, 5> times_of(const Summary& summary);
std::string bytes_text(std::size_t bytes);  // "64 KiB"; "-" for 0
std::string speed_text(double bytes_a_ns);  // "12.3 GB/s", "40.0 kB/s"
std::string rate_text(double ns);           // "45.6 M/s", "40.0 k/s"
// A test's main figure, for one operation in `ns`: its time, its speed or its rate.
std::string figure_text(const Test& test, std::size_t bytes, double ns);

}  // namespace memspan::perf
