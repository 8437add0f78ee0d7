// SPDX-License-Identifier: Apache-2.0
// Sleeping on shared memory until another thread reports a change: on a word (futex), the fence
// that lets writers do without one, and the event count, which loses no wake-up. Works across
// processes; all zeros is a valid initial state.
//
//   writer:  store the change; notify(count)
//   waiter:  await_event(count, deadline, [&] { return has_changed(); })
//
// A wait also ends at its deadline and when its thread is interrupted. A writer that dies between
// its store and notify() costs sleepers at most kLongestSleep. Waits for peers of a job use the
// doorbells of node/wait.h instead, which put() rings at the cost of one load.
#pragma once

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdint>

#include "core/interrupt.h"

namespace memspan::inline node {

// Sleeps while `word` is `seen`, at most `limit`. May wake early; works across processes.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, Duration limit) {
  auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(limit).count();
  timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, seen, &time, nullptr, 0);
}
inline void futex_wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr,
          0);
}

// Makes fence_all_writers() reach this process. Call once per process, before it writes to peers.
inline void allow_fences_from_peers() {
  syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
}
// Before it returns, every running thread of every process that called allow_fences_from_peers()
// passes a full memory fence. Afterwards each writer that looks sees our earlier store, or we see
// the writer's. The sleeper pays microseconds and the writers pay nothing. If the kernel does not
// support it, sleepers wake at their time limit instead.
inline void fence_all_writers() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

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

}  // namespace memspan::inline node
