// SPDX-License-Identifier: Apache-2.0
// The words of an endpoint that its peers add to, and waiting for them.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/clock.h"
#include "core/status.h"
#include "fabric/transfer/registration_table.h"

namespace memspan::transfer {

// kInvalidArgument when there is no such counter.
Status check_counter(std::uint32_t counter);

// A process that sees the sum sees all earlier moves. For any process that has the table.
void add_to_counter(table_layout::Counters& counters, std::uint32_t counter, std::uint64_t value);
std::uint64_t read_counter(const table_layout::Counters& counters, std::uint32_t counter);
// Waits until the counter is `value` or more. kTimeout reports the counter. kUnavailable: a thread
// set `is_over` and called ring_counters().
Status wait_for_counter(table_layout::Counters& counters, std::uint32_t counter,
                        std::uint64_t value, const std::atomic<bool>& is_over, Deadline deadline);
void ring_counters(table_layout::Counters& counters);

}  // namespace memspan::transfer
