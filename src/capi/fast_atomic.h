// SPDX-License-Identifier: Apache-2.0
// Atomics as the API bindings have them; in line is only the fast case, as in fast_rma.h.
#pragma once

#include <bit>

#include "capi/access.h"
#include "capi/polling.h"
#include "observe/counters.h"
#include "pgas/rma.h"

namespace memspan::capi {

[[gnu::cold]] std::uint64_t atomic_slow_path(const char* call, const AtomicOp& op,
                                             const void* target, int pe, ContextNumber context);

// The fast case, or null: the word is symmetric, well aligned and mapped.
template <typename T>
inline const Route* find_word(const T* word, int pe) {
  const Route* route = process_state.routes.find_mapped<sizeof(T)>(word, pe);
  return is_aligned(word) ? route : nullptr;
}

// Handles calls that miss the inline case: counts them (observe/counters.h) or takes the slow path.
template <AtomicKind kind, typename T>
[[gnu::noinline]] T atomic_elsewhere(const char* call, const T* target, T operand, T compare,
                                     int pe, ContextNumber context) {
  if (only_counts()) [[likely]] {
    const Route* route = process_state.routes.find_mapped_recorded<sizeof(T)>(target, pe);
    if (route != nullptr && is_aligned(target)) [[likely]] {
      T before;
      require(call,
              pgas::atomic<kind>(process_state.routes, *route, target, operand, compare, &before));
      count_call(CallKind::kAtomic, sizeof(T));
      return before;
    }
  }
  using Word = pgas::WordOf<T>;
  const AtomicOp op{kind, sizeof(T), std::bit_cast<Word>(operand), std::bit_cast<Word>(compare)};
  return std::bit_cast<T>(static_cast<Word>(atomic_slow_path(call, op, target, pe, context)));
}

template <AtomicKind kind, typename T>
inline T fetch_atomic_once(const char* call, const T* target, T operand, T compare, int pe,
                           ContextNumber context) {
  const Route* route = find_word(target, pe);
  if (route == nullptr) [[unlikely]]
    return atomic_elsewhere<kind>(call, target, operand, compare, pe, context);
  T before;
  require(call,
          pgas::atomic<kind>(process_state.routes, *route, target, operand, compare, &before));
  return before;
}

// A noted look.
template <typename T>
[[gnu::noinline]] T fetch_own_word(const char* call, const T* source, int pe,
                                   ContextNumber context) {
  return noted(source, [=] {
    return fetch_atomic_once<AtomicKind::kFetch>(call, source, T{}, T{}, pe, context);
  });
}

template <AtomicKind kind, typename T>
inline T fetch_atomic(const char* call, const T* target, T operand, T compare, int pe,
                      ContextNumber context = kDefaultContext) {
  if constexpr (kind == AtomicKind::kFetch)
    if (has_to_note(pe)) [[unlikely]]
      return fetch_own_word(call, target, pe, context);
  return fetch_atomic_once<kind>(call, target, operand, compare, pe, context);
}

template <AtomicKind kind, typename T>
inline void change_atomic(const char* call, T* target, T operand, int pe,
                          ContextNumber context = kDefaultContext) {
  const Route* route = find_word(target, pe);
  if (route == nullptr) [[unlikely]] {
    atomic_elsewhere<kind>(call, target, operand, T{}, pe, context);
    return;
  }
  require(call, pgas::atomic<kind, T>(process_state.routes, *route, target, operand, T{}, nullptr));
}

}  // namespace memspan::capi
