// SPDX-License-Identifier: Apache-2.0
// Sleeping on a word of shared memory, and the fence that lets writers do without one.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/clock.h"

namespace memspan {

// Sleeps while `word` is `seen`, at most `limit`. May wake early; works across processes.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, Duration limit);
void futex_wake_all(std::atomic<std::uint32_t>& word);

// Makes fence_all_writers() reach this process. Call once per process, before it writes to peers.
void allow_fences_from_peers();
// Before it returns, every running thread of every process that called allow_fences_from_peers()
// passes a full memory fence. Afterwards each writer that looks sees our earlier store, or we see
// the writer's. The sleeper pays microseconds and the writers pay nothing. If the kernel does not
// support it, sleepers wake at their time limit instead.
void fence_all_writers();

}  // namespace memspan
