// SPDX-License-Identifier: Apache-2.0
#include "core/lifetime.h"

#include <unistd.h>

#include <array>
#include <cstdio>

#include "core/mutex.h"
#include "core/thread.h"

namespace memspan::inline core {
namespace {

struct Ends {
  ~Ends() {
    while (count > 0) functions[--count]();
  }
  std::array<void (*)(), 8> functions{};
  std::size_t count = 0;
};

constexpr auto kMostFlushing = std::chrono::seconds(1);

struct Flush {
  Mutex mutex;
  ConditionVariable changed;
  bool is_done MEMSPAN_GUARDED_BY(mutex) = false;
};

}  // namespace

void at_thread_end(void (*end)()) {
#pragma GCC diagnostic push
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wexit-time-destructors"
#endif
  thread_local Ends ends;
#pragma GCC diagnostic pop
  const auto known = ends.functions.begin() + static_cast<std::ptrdiff_t>(ends.count);
  if (std::find(ends.functions.begin(), known, end) != known) return;
  MEMSPAN_CHECK(ends.count < ends.functions.size());
  ends.functions[ends.count++] = end;
}

void flush_and_exit(int code) try {
  auto* const flush = new Flush;  // the thread may use it until the process has ended
  auto thread = start_thread("the last output", [flush] {
    std::fflush(stdout);  // before streams that are held
    std::fflush(nullptr);
    MutexLock lock(flush->mutex);
    flush->is_done = true;
    flush->changed.notify_all();
  });
  if (thread.is_ok()) {
    thread->detach();
    const Deadline deadline = Deadline::after(kMostFlushing);
    MutexLock lock(flush->mutex);
    while (!flush->is_done && flush->changed.wait_until(flush->mutex, deadline)) {
    }
  } else if (ftrylockfile(stdout) == 0) {
    fflush_unlocked(stdout);
  }
  _exit(code);
} catch (const std::bad_alloc&) {
  if (ftrylockfile(stdout) == 0) fflush_unlocked(stdout);
  _exit(code);
}

}  // namespace memspan::inline core
