// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/counters.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/interrupt.h"
#include "world/futex.h"

namespace memspan::transfer {
namespace {

// Who died between adding and ringing costs a sleeper so much.
constexpr Duration kLongestSleep = std::chrono::milliseconds(500);

}  // namespace

Status check_counter(std::uint32_t counter) {
  if (counter < ledger::kCounters) return Status::ok();
  return {Code::kInvalidArgument, fmt::format("invalid counter, which is {}: allowed are 0 to {}",
                                              counter, ledger::kCounters - 1)};
}

void add_to_counter(ledger::Counters& counters, std::uint32_t counter, std::uint64_t value) {
  // Sequentially consistent, as the waiter's: either it sees the sum or this sees it waiting.
  counters.values[counter].fetch_add(value, std::memory_order_seq_cst);
  ring_counters(counters);
}

void ring_counters(ledger::Counters& counters) {
  counters.bell.fetch_add(1, std::memory_order_seq_cst);
  if (counters.waiting.load(std::memory_order_seq_cst) != 0) futex_wake_all(counters.bell);
}

std::uint64_t read_counter(const ledger::Counters& counters, std::uint32_t counter) {
  return counters.values[counter].load(std::memory_order_acquire);
}

Status wait_for_counter(ledger::Counters& counters, std::uint32_t counter, std::uint64_t value,
                        const std::atomic<bool>& is_over, Deadline deadline) {
  auto& word = counters.values[counter];
  if (word.load(std::memory_order_acquire) >= value) return Status::ok();
  counters.waiting.fetch_add(1, std::memory_order_seq_cst);
  std::uint64_t seen = 0;
  bool has_ended = false;
  while (true) {
    const std::uint32_t rung = counters.bell.load(std::memory_order_seq_cst);
    seen = word.load(std::memory_order_seq_cst);
    has_ended = is_over.load(std::memory_order_seq_cst);
    if (seen >= value || has_ended || is_interrupted() || deadline.has_passed()) break;
    futex_wait(counters.bell, rung, std::min(kLongestSleep, until_next_look(deadline).remaining()));
  }
  counters.waiting.fetch_sub(1, std::memory_order_seq_cst);
  if (seen >= value) return Status::ok();
  if (has_ended) return {Code::kUnavailable, "the endpoint is being destroyed"};
  return end_of_wait(fmt::format("timeout: counter {} is {} and not yet {}", counter, seen, value));
}

}  // namespace memspan::transfer
