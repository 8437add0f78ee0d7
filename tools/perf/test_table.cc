// SPDX-License-Identifier: Apache-2.0
#include "perf/test_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace memspan::perf {
namespace {

constexpr bool kSizes = true;
constexpr bool kOneSize = false;

constexpr Test kTests[] = {
    {"put", "rma", Figure::kLatency, kSizes, Baseline::kCopy, "shmem_putmem and shmem_quiet",
     run_put},
    {"get", "rma", Figure::kLatency, kSizes, Baseline::kCopy, "shmem_getmem", run_get},
    {"put-bandwidth", "rma", Figure::kBandwidth, kSizes, Baseline::kCopy,
     "windows of shmem_putmem_nbi, then shmem_quiet", run_put_windows},
    {"get-bandwidth", "rma", Figure::kBandwidth, kSizes, Baseline::kCopy,
     "windows of shmem_getmem_nbi, then shmem_quiet", run_get_windows},
    {"put-rate", "rma", Figure::kRate, kOneSize, Baseline::kNone,
     "8-byte messages a second: shmem_uint64_p, shmem_quiet a window", run_put_rate},
    {"ping-pong", "rma", Figure::kLatency, kOneSize, Baseline::kCacheLine,
     "one way: shmem_uint64_p and shmem_uint64_wait_until, there and back, halved", run_ping_pong},
    {"put-signal", "rma", Figure::kLatency, kSizes, Baseline::kCacheLineOrCopy,
     "one way: shmem_putmem_signal and shmem_signal_wait_until, there and back, halved",
     run_put_signal},
    {"atomic-add", "atomics", Figure::kLatency, kOneSize, Baseline::kNone,
     "shmem_uint64_atomic_add and shmem_quiet", run_atomic},
    {"atomic-fetch-add", "atomics", Figure::kLatency, kOneSize, Baseline::kNone,
     "shmem_uint64_atomic_fetch_add", run_atomic},
    {"atomic-swap", "atomics", Figure::kLatency, kOneSize, Baseline::kNone,
     "shmem_uint64_atomic_swap", run_atomic},
    {"atomic-compare-swap", "atomics", Figure::kLatency, kOneSize, Baseline::kNone,
     "shmem_uint64_atomic_compare_swap", run_atomic},
    {"atomic-fetch", "atomics", Figure::kLatency, kOneSize, Baseline::kNone,
     "shmem_uint64_atomic_fetch", run_atomic},
    {"barrier", "collectives", Figure::kLatency, kOneSize, Baseline::kCacheLine,
     "shmem_barrier_all", run_barrier},
    {"broadcast", "collectives", Figure::kLatency, kSizes, Baseline::kCacheLineOrCopy,
     "shmem_broadcastmem of PE 0's bytes", run_broadcast},
    {"reduce", "collectives", Figure::kLatency, kSizes, Baseline::kCacheLineOrCopy,
     "shmem_float_sum_reduce; the size is a PE's", run_reduce},
    {"alltoall", "collectives", Figure::kLatency, kSizes, Baseline::kCacheLineOrCopy,
     "shmem_alltoallmem; the size goes to each PE", run_all_to_all},
    {"collect", "collectives", Figure::kLatency, kSizes, Baseline::kCacheLineOrCopy,
     "shmem_collectmem; the size is a PE's", run_collect},
    {"fcollect", "collectives", Figure::kLatency, kSizes, Baseline::kCacheLineOrCopy,
     "shmem_fcollectmem; the size is a PE's", run_collect},
    {"group-barrier", "groups", Figure::kLatency, kOneSize, Baseline::kCacheLine,
     "memspan_group_barrier", run_group},
    {"group-broadcast", "groups", Figure::kLatency, kSizes, Baseline::kCacheLineOrCopy,
     "memspan_group_broadcast of member 0's bytes", run_group},
    {"group-all-reduce", "groups", Figure::kLatency, kSizes, Baseline::kCacheLineOrCopy,
     "memspan_group_all_reduce, sum of floats", run_group},
    {"group-all-gather", "groups", Figure::kLatency, kSizes, Baseline::kCacheLineOrCopy,
     "memspan_group_all_gather; the size is a member's", run_group},
    {"group-reduce-scatter", "groups", Figure::kLatency, kSizes, Baseline::kCacheLineOrCopy,
     "memspan_group_reduce_scatter; the size is a member's", run_group},
    {"group-all-to-all", "groups", Figure::kLatency, kSizes, Baseline::kCacheLineOrCopy,
     "memspan_group_all_to_all; the size goes to each member", run_group},
    {"bm-write", "pools", Figure::kBandwidth, kSizes, Baseline::kCopy,
     "smem_bm_copy from this process into another's window", run_pool},
    {"bm-read", "pools", Figure::kBandwidth, kSizes, Baseline::kCopy,
     "smem_bm_copy from another's window into this process", run_pool},
    {"bm-batch", "pools", Figure::kBandwidth, kSizes, Baseline::kCopy,
     "smem_bm_copy_batch, a batch of pieces of this size into another's window", run_pool},
    {"trans-write", "transfers", Figure::kBandwidth, kSizes, Baseline::kCopy, "smem_trans_write",
     run_transfer},
    {"trans-read", "transfers", Figure::kBandwidth, kSizes, Baseline::kCopy, "smem_trans_read",
     run_transfer},
    {"trans-batch-write", "transfers", Figure::kBandwidth, kSizes, Baseline::kCopy,
     "smem_trans_batch_write, a batch of pieces of this size", run_transfer},
    {"trans-batch-read", "transfers", Figure::kBandwidth, kSizes, Baseline::kCopy,
     "smem_trans_batch_read, a batch of pieces of this size", run_transfer},
};

}  // namespace

std::span<const Test> all_tests() {
  return kTests;
}

const Test* find_test(std::string_view name) {
  const auto* found = std::find_if(std::begin(kTests), std::end(kTests),
                                   [&](const Test& test) { return test.name == name; });
  return found == std::end(kTests) ? nullptr : found;
}

std::string group_names() {
  std::string names;
  std::string_view last;
  for (const Test& test : kTests) {
    if (test.group != last) names += fmt::format("{}{}", names.empty() ? "" : ", ", test.group);
    last = test.group;
  }
  return names;
}

Result<std::vector<std::string>> choose_tests(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool is_known =
        name == "all" || std::any_of(std::begin(kTests), std::end(kTests), [&](const Test& test) {
          return test.name == name || test.group == name;
        });
    if (!is_known)
      return Status(Code::kInvalidArgument,
                    fmt::format("there is no test \"{}\"; memspan-perf list prints them, and the "
                                "groups are {} and all",
                                name, group_names()));
  }
  std::vector<std::string> chosen;
  for (const Test& test : kTests) {
    const bool is_wanted = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return name == "all" || test.name == name || test.group == name;
    });
    if (is_wanted) chosen.emplace_back(test.name);
  }
  return chosen;
}

}  // namespace memspan::perf
