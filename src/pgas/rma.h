// SPDX-License-Identifier: Apache-2.0
// What a process does with the memory of one peer, for anything that has a Route: put and get,
// atomics, signals, and the order of all. Blocking puts return when the source may be changed. On
// mapped memory they are then also delivered, so the non-blocking forms are the same.
//
// The caller has found the route and checked the addresses (RouteTable::find).
#pragma once

#include <bit>
#include <type_traits>

#include "device/host/copy.h"
#include "world/route.h"

namespace memspan::inline pgas {

inline std::byte* at(void* base, std::ptrdiff_t offset) {
  return static_cast<std::byte*>(base) + offset;
}
inline const std::byte* at(const void* base, std::ptrdiff_t offset) {
  return static_cast<const std::byte*>(base) + offset;
}

// Through the link, for peers that plain stores do not reach. Out of line: never the fast case.
Status put_by_link(const RouteTable& table, const Route& route, void* dest, const void* source,
                   std::size_t bytes);
Status get_by_link(const RouteTable& table, const Route& route, void* dest, const void* source,
                   std::size_t bytes);

// `dest` is a local symmetric address, `source` any local one.
inline Status put(const RouteTable& table, const Route& route, void* dest, const void* source,
                  std::size_t bytes) {
  if (!route.is_direct()) [[unlikely]]
    return put_by_link(table, route, dest, source, bytes);
  copy_bytes(route.address(static_cast<std::byte*>(dest)), source, bytes);
  route.notify();
  return Status::ok();
}

// A get is complete when it returns: what this thread reads or gets next is not older. Pairs with
// the fence or the release store between the peer's puts. No instruction where loads stay in order.
inline void complete_get() {
  std::atomic_thread_fence(std::memory_order_acquire);
}

// `source` is a local symmetric address, `dest` any local one.
inline Status get(const RouteTable& table, const Route& route, void* dest, const void* source,
                  std::size_t bytes) {
  if (!route.is_direct()) [[unlikely]]
    return get_by_link(table, route, dest, source, bytes);
  copy_bytes(dest, route.address(static_cast<const std::byte*>(source)), bytes);
  complete_get();
  return Status::ok();
}

// Strided forms: element i moves from source[i * source_stride] to dest[i * dest_stride], in blocks
// of `block` elements (1 for iput/iget) whose starts the strides separate.
struct Strides {
  std::ptrdiff_t dest;
  std::ptrdiff_t source;
  std::size_t block;
  std::size_t count;  // of blocks
};
Status move_strided(MoveDirection direction, const RouteTable& table, const Route& route,
                    void* dest, const void* source, const Strides& strides,
                    std::size_t element_bytes);

// Quiet over the links that were used since the last quiet. A link keeps order without a fence.
Status quiet_links(const RouteTable& table);

// Whether any route needs its link asked; decided at join.
bool has_links(const RouteTable& table);

// Atomics on symmetric words of 4 and 8 bytes, integers and floating point (fetch, set, swap and
// compare-swap of the bits). On mapped memory they are the processor's own instruction.
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

// Signals are 64-bit symmetric words that say that data has arrived.
//
// Updates the peer's copy of `signal` after everything this thread put to that peer before.
Status signal(const RouteTable& table, const Route& route, std::uint64_t* signal,
              std::uint64_t value, SignalOp op);

// The routes of put_signal(): the two may be in different regions, so each has a route to the peer.
struct PutSignalRoutes {
  const Route& data;
  const Route& signal;
};
// For peers that plain stores do not reach.
Status put_signal_by_link(const RouteTable& table, const PutSignalRoutes& routes, void* dest,
                          const void* source, std::size_t bytes, std::uint64_t* word,
                          std::uint64_t value, SignalOp op);

// The data, then the signal: a PE that sees the signal sees the data. No bytes: only the signal.
inline Status put_signal(const RouteTable& table, const PutSignalRoutes& routes, void* dest,
                         const void* source, std::size_t bytes, std::uint64_t* word,
                         std::uint64_t value, SignalOp op) {
  if (!routes.signal.is_direct()) [[unlikely]]
    return put_signal_by_link(table, routes, dest, source, bytes, word, value, op);
  copy_bytes(routes.data.address(static_cast<std::byte*>(dest)), source, bytes);
  if (op == SignalOp::kSet)
    __atomic_store_n(routes.signal.address(word), value, __ATOMIC_RELEASE);
  else
    __atomic_fetch_add(routes.signal.address(word), value, __ATOMIC_RELEASE);
  routes.signal.notify();
  return Status::ok();
}

}  // namespace memspan::inline pgas
