// SPDX-License-Identifier: Apache-2.0
#include "core/exit.h"

#include <unistd.h>

#include <cstdio>
#include <new>
#include <thread>

#include "core/mutex.h"
#include "core/thread.h"

namespace memspan {
namespace {

constexpr auto kMostFlushing = std::chrono::seconds(1);

struct Flush {
  Mutex mutex;
  ConditionVariable changed;
  bool is_done MEMSPAN_GUARDED_BY(mutex) = false;
};

}  // namespace

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

}  // namespace memspan
