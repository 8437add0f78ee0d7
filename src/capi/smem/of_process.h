// SPDX-License-Identifier: Apache-2.0
// State of the MemFabric face that a child of fork() must not share: its connections have no
// threads there, and its memory is the parent's.
#pragma once

#include <pthread.h>

#include <atomic>

#include "core/mutex.h"

namespace memspan::capi {

// The one T of this process; a child of fork() forgets its parent's and gets a new one. Never
// destroyed, since exit handlers may still call. Thread-safe.
template <typename T>
T& of_process() {
  static std::atomic<T*> current{nullptr};
  static Mutex mutex;
  // Pairs with the store below.
  if (T* made = current.load(std::memory_order_acquire)) return *made;
  MutexLock lock(mutex);
  if (T* made = current.load(std::memory_order_relaxed)) return *made;
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { current.store(nullptr, std::memory_order_relaxed); });
  T* made = new T;
  current.store(made, std::memory_order_release);
  return *made;
}

}  // namespace memspan::capi
