// SPDX-License-Identifier: Apache-2.0
#include "capi/polling.h"

#include <sched.h>

#include <memory>

#include "core/clock.h"
#include "node/poll_detector.h"

namespace memspan::capi {
namespace {

// Much longer than a process that polls itself keeps the core, and less than a time slice.
constexpr auto kLongYield = std::chrono::microseconds(500);

// One for each thread. On the heap, because a library that is loaded later has little room for
// thread-local data.
thread_local std::unique_ptr<PollDetector> detector_of_thread;

PollDetector& detector() {
  if (detector_of_thread == nullptr) detector_of_thread = std::make_unique<PollDetector>();
  return *detector_of_thread;
}

}  // namespace

bool note_look(const void* word, std::uint64_t found) {
  if (!detector().is_polling(word, found)) return false;
  const auto begin = Clock::now();
  sched_yield();
  if (Clock::now() - begin > kLongYield) detector().note_long_yield();
  return true;
}

void note_second_look(const void* word, std::uint64_t found) {
  detector().note(word, found);
}

}  // namespace memspan::capi
