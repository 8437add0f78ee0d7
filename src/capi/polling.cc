// SPDX-License-Identifier: Apache-2.0
#include "capi/polling.h"

#include <sched.h>

#include <new>

#include "core/clock.h"
#include "core/lifetime.h"
#include "node/poll_detector.h"

namespace memspan::capi {
namespace {

// Much longer than a process that polls itself keeps the core, and less than a time slice.
constexpr auto kLongYield = std::chrono::microseconds(500);

PollDetector& detector() {
  return thread_object<PollDetector>();
}

}  // namespace

bool note_look(const void* word, std::uint64_t found) try {
  if (!detector().is_polling(word, found)) return false;
  const auto begin = Clock::now();
  sched_yield();
  if (Clock::now() - begin > kLongYield) detector().note_long_yield();
  return true;
} catch (const std::bad_alloc&) {
  return false;  // of the first note of a thread: it makes the next one
}

void note_second_look(const void* word, std::uint64_t found) {
  detector().note(word, found);
}

}  // namespace memspan::capi
