// SPDX-License-Identifier: Apache-2.0
// Atomics on symmetric words of 4 and 8 bytes, integers and floating point (fetch, set, swap and
// compare-swap of the bits). On mapped memory they are the processor's own instruction.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/status.h"
#include "transport/link.h"
#include "world/route.h"

namespace memspan::pgas {

template <typename T>
using WordOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

// For kinds known only at run time; `fetched`, when not null, gets the value before. Out of line.
Status atomic_at(const RouteTable& table, const Route& route, const AtomicOp& op, const void* word,
                 std::uint64_t* fetched);

// Applies `kind` with `operand` (and `compare`) to the peer's copy of `target`; the value before
// goes to *before when it is not null. The kind is a constant at every call, so each
// instantiation is one instruction and the doorbell check.
template <AtomicKind kind, typename T>
Status atomic(const RouteTable& table, const Route& route, const T* target, T operand, T compare,
              T* before) {
  using Word = WordOf<T>;
  static_assert(sizeof(T) == sizeof(Word));
  auto operand_bits = std::bit_cast<Word>(operand);
  auto compare_bits = std::bit_cast<Word>(compare);
  if (!route.is_direct()) [[unlikely]] {
    std::uint64_t fetched = 0;
    Status status = atomic_at(table, route, AtomicOp{kind, sizeof(T), operand_bits, compare_bits},
                              target, before != nullptr ? &fetched : nullptr);
    if (before != nullptr) *before = std::bit_cast<T>(static_cast<Word>(fetched));
    return status;
  }
  auto* word = reinterpret_cast<Word*>(route.address(const_cast<T*>(target)));
  Word old = 0;
  if constexpr (kind == AtomicKind::kFetch) old = __atomic_load_n(word, __ATOMIC_SEQ_CST);
  if constexpr (kind == AtomicKind::kSet) __atomic_store_n(word, operand_bits, __ATOMIC_RELEASE);
  if constexpr (kind == AtomicKind::kSwap)
    old = __atomic_exchange_n(word, operand_bits, __ATOMIC_SEQ_CST);
  if constexpr (kind == AtomicKind::kCompareSwap) {
    old = compare_bits;
    __atomic_compare_exchange_n(word, &old, operand_bits, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
  }
  if constexpr (kind == AtomicKind::kAdd)
    old = __atomic_fetch_add(word, operand_bits, __ATOMIC_SEQ_CST);
  if constexpr (kind == AtomicKind::kAnd)
    old = __atomic_fetch_and(word, operand_bits, __ATOMIC_SEQ_CST);
  if constexpr (kind == AtomicKind::kOr)
    old = __atomic_fetch_or(word, operand_bits, __ATOMIC_SEQ_CST);
  if constexpr (kind == AtomicKind::kXor)
    old = __atomic_fetch_xor(word, operand_bits, __ATOMIC_SEQ_CST);
  if constexpr (kind != AtomicKind::kFetch) route.notify();
  if (before != nullptr) *before = std::bit_cast<T>(old);
  return Status::ok();
}

}  // namespace memspan::pgas
