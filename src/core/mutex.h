// SPDX-License-Identifier: Apache-2.0
// std::mutex with the annotations that let clang's -Wthread-safety prove what is guarded.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>

#include "core/clock.h"
#include "core/status.h"

#if defined(__clang__)
#define MEMSPAN_ATTRIBUTE_(x) __attribute__((x))
#else
#define MEMSPAN_ATTRIBUTE_(x)
#endif
#define MEMSPAN_GUARDED_BY(x) MEMSPAN_ATTRIBUTE_(guarded_by(x))
#define MEMSPAN_REQUIRES(...) MEMSPAN_ATTRIBUTE_(requires_capability(__VA_ARGS__))
#define MEMSPAN_EXCLUDES(...) MEMSPAN_ATTRIBUTE_(locks_excluded(__VA_ARGS__))

// ThreadSanitizer.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MEMSPAN_THREAD_SANITIZER_ 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define MEMSPAN_THREAD_SANITIZER_ 1
#endif

#ifdef MEMSPAN_THREAD_SANITIZER_
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace memspan::inline core {

// Debug builds check that no thread blocks while it runs an engine, which owns connections of all
// peers (transport/message/engine.h). State of the calling thread.
class OnEngine {
 public:
#ifdef NDEBUG
  static void begin() {}
  static void end() {}
  static void check() {}
  static void check_may_block() {}
#else
  static void begin() {
    ++depth_;
  }
  static void end() {
    --depth_;
  }
  static void check() {
    MEMSPAN_CHECK(depth_ > 0);
  }
  // For calls that may block.
  static void check_may_block() {
    MEMSPAN_CHECK(depth_ == 0);
  }

 private:
  static inline thread_local int depth_ = 0;
#endif
};

class MEMSPAN_ATTRIBUTE_(capability("mutex")) Mutex {
 public:
  void lock() MEMSPAN_ATTRIBUTE_(acquire_capability()) { mutex_.lock(); }
  bool try_lock() MEMSPAN_ATTRIBUTE_(try_acquire_capability(true)) { return mutex_.try_lock(); }
  void unlock() MEMSPAN_ATTRIBUTE_(release_capability()) { mutex_.unlock(); }

 private:
  friend class ConditionVariable;
  std::mutex mutex_;
};

class MEMSPAN_ATTRIBUTE_(scoped_lockable) MutexLock : NotCopyable {
 public:
  explicit MutexLock(Mutex& mutex) MEMSPAN_ATTRIBUTE_(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() MEMSPAN_ATTRIBUTE_(release_capability()) { mutex_.unlock(); }

 private:
  Mutex& mutex_;
};

// Waits with the mutex held, as std::condition_variable does. False when the deadline passed.
class ConditionVariable {
 public:
  bool wait_until(Mutex& mutex, const Deadline& deadline) MEMSPAN_REQUIRES(mutex) {
    OnEngine::check_may_block();
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    bool in_time = true;
    if (deadline.is_never())
      condition_.wait(lock);
    else
      in_time = condition_.wait_until(lock, deadline.when()) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

// The T of this process. Never destroyed, since threads may outlive main(). Its `mutex` is held
// across fork(), so that it is free in the child, which calls forget_in_child() with it.
template <typename T>
T& held_at_fork() {
  static T& made = []() -> T& {
    auto only = std::make_unique<T>();
    const int failure = pthread_atfork(
        []() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) { held_at_fork<T>().mutex.lock(); },
        []() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) { held_at_fork<T>().mutex.unlock(); },
        []() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
          held_at_fork<T>().forget_in_child();
          held_at_fork<T>().mutex.unlock();
        });
    if (failure != 0) throw std::bad_alloc();
    return *only.release();
  }();
  return made;
}

// For ThreadSanitizer; empty in every other build. Between these two calls this thread reads and
// writes memory for another process. TSan sees neither the messages that order these accesses with
// those of our threads nor the accesses of a process that has mapped our memory. It would report
// each access as a race.
inline void begin_access_for_peer() {
#ifdef MEMSPAN_THREAD_SANITIZER_
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
}
inline void end_access_for_peer() {
#ifdef MEMSPAN_THREAD_SANITIZER_
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
}

}  // namespace memspan::inline core
