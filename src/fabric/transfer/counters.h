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

// What was moved before is there for who sees the sum. Any process that has the registration table.
void add_to_counter(table_layout::Counters& counters, std::uint32_t counter, std::uint64_t value);
std::uint64_t read_counter(const table_layout::Counters& counters, std::uint32_t counter);
// Until it is `value` or more; kTimeout says what it is, kUnavailable: `is_over` has become true,
// and who set it has rung.
Status wait_for_counter(table_layout::Counters& counters, std::uint32_t counter,
                        std::uint64_t value, const std::atomic<bool>& is_over, Deadline deadline);
void ring_counters(table_layout::Counters& counters);

}  // namespace memspan::transfer
