// SPDX-License-Identifier: Apache-2.0
// State of the MemFabric face that a child of fork() must not share: its connections have no
// threads there, and its memory is the parent's.
#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>

namespace memspan::capi {

// The one T of this process; a child of fork() leaves its parent's alone and gets a new one. Never
// destroyed: exit handlers may still call. Thread-safe; two threads may both make one at first, and
// one of them is dropped.
template <typename T>
T& of_process() {
  static std::atomic<T*> current{nullptr};
  // No other thread runs in the child yet.
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { current.store(nullptr, std::memory_order_relaxed); });
  T* known = current.load(std::memory_order_acquire);  // pairs with the exchange
  if (known != nullptr) return *known;
  auto made = std::make_unique<T>();
  if (current.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel))
    known = made.release();
  return *known;
}

}  // namespace memspan::capi
