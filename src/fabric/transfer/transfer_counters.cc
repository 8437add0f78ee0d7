// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/transfer_counters.h"

#include <fmt/format.h>

#include "core/interrupt.h"
#include "node/event_count.h"

namespace memspan::transfer {
Status check_counter(std::uint32_t counter) {
  if (counter < table_layout::kCounters) return Status::ok();
  return {Code::kInvalidArgument, fmt::format("invalid counter, which is {}: allowed are 0 to {}",
                                              counter, table_layout::kCounters - 1)};
}

void add_to_counter(table_layout::Counters& counters, std::uint32_t counter, std::uint64_t value) {
  counters.values[counter].fetch_add(value, std::memory_order_seq_cst);
  ring_counters(counters);
}

void ring_counters(table_layout::Counters& counters) {
  notify(counters.added);
}

std::uint64_t read_counter(const table_layout::Counters& counters, std::uint32_t counter) {
  return counters.values[counter].load(std::memory_order_acquire);
}

Status wait_for_counter(table_layout::Counters& counters, std::uint32_t counter,
                        std::uint64_t value, const std::atomic<bool>& is_over, Deadline deadline) {
  const auto& word = counters.values[counter];
  std::uint64_t seen = 0;
  const bool is_ended = await_event(counters.added, deadline, [&] {
    seen = word.load(std::memory_order_seq_cst);
    return seen >= value || is_over.load(std::memory_order_seq_cst);
  });
  if (seen >= value) return Status::ok();
  if (is_ended) return {Code::kUnavailable, "the endpoint is being destroyed"};
  return end_of_wait(fmt::format("timeout: counter {} is {} and not yet {}", counter, seen, value));
}

}  // namespace memspan::transfer
