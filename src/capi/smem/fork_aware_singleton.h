// SPDX-License-Identifier: Apache-2.0
// State of the MemFabric face that a child of fork() must not share: its connections have no
// threads there, and its memory is the parent's.
#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>

namespace memspan::capi {

// A type with work to do around a fork(). The parent calls the first two functions. The child calls
// the third, when no other thread runs and any lock may be held for ever.
template <typename T>
concept FollowsForks = requires(T& state) {
  state.before_fork();
  state.after_fork();
  state.forget_in_child();
};

// The one T of this process, which callers name: `constexpr auto& pools =
// fork_aware_singleton<Pools>;` A child of fork() keeps its parent's T untouched and gets a new
// one. Never destroyed: exit handlers may still call. Thread-safe; two threads may both make the
// first one, and one of the two is dropped.
template <typename T>
T& fork_aware_singleton() {
  static std::atomic<T*> current{nullptr};
  // No other thread runs in the child yet.
  [[maybe_unused]] static const int registered = pthread_atfork(
      [] {
        if constexpr (FollowsForks<T>)
          if (T* const state = current.load(std::memory_order_acquire)) state->before_fork();
      },
      [] {
        if constexpr (FollowsForks<T>)
          if (T* const state = current.load(std::memory_order_acquire)) state->after_fork();
      },
      [] {
        T* const of_parent = current.exchange(nullptr, std::memory_order_relaxed);
        if constexpr (FollowsForks<T>)
          if (of_parent != nullptr) of_parent->forget_in_child();
      });
  T* known = current.load(std::memory_order_acquire);  // pairs with the exchange
  if (known != nullptr) return *known;
  auto made = std::make_unique<T>();
  if (current.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel))
    known = made.release();
  return *known;
}

}  // namespace memspan::capi
