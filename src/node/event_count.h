// SPDX-License-Identifier: Apache-2.0
// An event count: a thread sleeps on shared memory until another one reports a change, without a
// lost wake-up. Works across processes; all zeros is a valid initial state.
//
//   writer:  store the change; notify(count)
//   waiter:  await_event(count, deadline, [&] { return has_changed(); })
//
// A wait also ends at its deadline and when its thread is interrupted. A writer that dies between
// its store and notify() costs sleepers at most kLongestSleep. Waits for peers of a job use the
// doorbells of node/wait.h instead, which put() rings at the cost of one load.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/clock.h"
#include "core/interrupt.h"
#include "node/futex.h"

namespace memspan {

inline constexpr Duration kLongestSleep = std::chrono::milliseconds(500);

struct EventCount {
  std::atomic<std::uint32_t> events;    // a futex word
  std::atomic<std::uint32_t> sleepers;  // threads that sleep or are about to
};
static_assert(sizeof(EventCount) == 8 && std::atomic<std::uint32_t>::is_always_lock_free);

// Costs a system call only while a thread sleeps.
inline void notify(EventCount& count) {
  // Sequentially consistent, as in the waiter: it sees the change or this sees the waiter.
  count.events.fetch_add(1, std::memory_order_seq_cst);
  if (count.sleepers.load(std::memory_order_seq_cst) != 0) futex_wake_all(count.events);
}

// True once ready() is; false if the deadline has passed or the thread is interrupted
// (end_of_wait() reports which). ready() loads with acquire order and has no side effects.
template <typename Ready>
bool await_event(EventCount& count, const Deadline& deadline, Ready ready) {
  if (ready()) return true;
  count.sleepers.fetch_add(1, std::memory_order_seq_cst);
  bool is_ready = false;
  while (true) {
    const std::uint32_t seen = count.events.load(std::memory_order_seq_cst);
    is_ready = ready();
    if (is_ready || is_interrupted() || deadline.has_passed()) break;
    futex_wait(count.events, seen, std::min(kLongestSleep, until_next_look(deadline).remaining()));
  }
  count.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return is_ready;
}

}  // namespace memspan
