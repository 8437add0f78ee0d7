// SPDX-License-Identifier: Apache-2.0
// The tests there are: one row of a table each, which --help, the list, the plots and the workers
// read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace memspan::perf {

class Meter;

// The kind of a test's figures, all made of the time of one operation.
enum class Figure { kLatency, kBandwidth, kRate };

// The machine's figure without memspan beside a test.
// kCacheLineOrCopy: the longer of both, of operations whose bytes another PE waits for.
enum class Baseline : std::uint8_t { kNone, kCopy, kCacheLine, kCacheLineOrCopy };

struct Test {
  std::string_view name;
  std::string_view group;
  Figure figure;
  bool has_sizes;
  Baseline baseline;
  std::string_view what;
  Status (*run)(Meter& meter, const Test& test);
};

std::span<const Test> all_tests();
// Null for an unknown name.
const Test* find_test(std::string_view name);
// Expands names of tests and of groups, and "all", in the table's order. kInvalidArgument names an
// unknown one.
Result<std::vector<std::string>> choose_tests(const std::vector<std::string>& names);
// The groups, with commas.
std::string group_names();

// ---- what the table's rows call, by file

Status run_put(Meter& meter, const Test& test);
Status run_get(Meter& meter, const Test& test);
Status run_put_windows(Meter& meter, const Test& test);
Status run_get_windows(Meter& meter, const Test& test);
Status run_put_rate(Meter& meter, const Test& test);
Status run_ping_pong(Meter& meter, const Test& test);
Status run_put_signal(Meter& meter, const Test& test);

Status run_atomic(Meter& meter, const Test& test);

Status run_barrier(Meter& meter, const Test& test);
Status run_broadcast(Meter& meter, const Test& test);
Status run_reduce(Meter& meter, const Test& test);
Status run_all_to_all(Meter& meter, const Test& test);
Status run_collect(Meter& meter, const Test& test);

Status run_group(Meter& meter, const Test& test);

Status run_pool(Meter& meter, const Test& test);
Status run_transfer(Meter& meter, const Test& test);

}  // namespace memspan::perf
