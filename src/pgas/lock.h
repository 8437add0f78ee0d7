// SPDX-License-Identifier: Apache-2.0
// Locks in a symmetric 64-bit word, first come first served.
//
// A queue (Mellor-Crummey and Scott) whose nodes are the processes' own copies of the word, so that
// each waiter looks at its own memory and is woken by its own doorbell:
//
//   | 63 ... 32: tail | 31: busy | 30: waits | 29 ... 0: next |
//
//   tail   the last in the queue, plus one; only rank 0's copy of it counts
//   busy   this process is in the queue
//   waits  the one before it has not passed the lock on yet
//   next   the one behind it, plus one
//
// All zero while the lock is free.
#pragma once

#include "world/world.h"

namespace memspan::inline pgas {

// `lock` is symmetric, aligned, and all zero at first. Threads of one process take turns, in no
// order. kPeerLost when a process died while this one waited.
Status lock(World& world, const char* what, std::uint64_t* lock);
// Whether it was free; then this process now has it.
Result<bool> try_lock(World& world, std::uint64_t* lock);
// kInvalidArgument when this process does not have it.
Status unlock(World& world, const char* what, std::uint64_t* lock);

}  // namespace memspan::inline pgas
