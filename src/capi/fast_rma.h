// SPDX-License-Identifier: Apache-2.0
// Put and get as the API bindings have them. In line is the one case that has to be fast: an
// address that is symmetric and a peer whose memory is mapped. Everything else (no bytes, a
// mistake, a link) is behind one jump, with the same arguments.
#pragma once

#include "capi/access.h"
#include "capi/polling.h"
#include "observe/counters.h"
#include "pgas/rma.h"

namespace memspan::capi {

using pgas::Strides;

// `kind` is kPut or kGet.
template <CallKind kind>
[[gnu::cold]] void move_slow_path(const char* call, void* dest, const void* source,
                                  std::size_t bytes, int pe, ContextNumber context);
// Handles calls that miss the inline case: counts them (observe/counters.h) or takes the slow path.
template <CallKind kind>
void move_elsewhere(const char* call, void* dest, const void* source, std::size_t bytes, int pe,
                    ContextNumber context);
template <CallKind kind>
void move_strided(const char* call, void* dest, const void* source, const Strides& strides,
                  std::size_t element_bytes, int pe, ContextNumber context = kDefaultContext);

// `count` elements.
template <std::size_t kElementBytes>
inline void put(const char* call, void* dest, const void* source, std::size_t count, int pe,
                ContextNumber context = kDefaultContext) {
  const Route* route = process_state.routes.find_mapped<kElementBytes>(dest, count, pe);
  if (route == nullptr || is_null(source)) [[unlikely]]
    return move_elsewhere<CallKind::kPut>(call, dest, source, bytes_of(count, kElementBytes), pe,
                                          context);
  require(call, pgas::put(process_state.routes, *route, dest, source, count * kElementBytes));
}

template <std::size_t kElementBytes>
inline void get(const char* call, void* dest, const void* source, std::size_t count, int pe,
                ContextNumber context = kDefaultContext) {
  const Route* route = process_state.routes.find_mapped<kElementBytes>(source, count, pe);
  if (route == nullptr || is_null(dest)) [[unlikely]]
    return move_elsewhere<CallKind::kGet>(call, dest, source, bytes_of(count, kElementBytes), pe,
                                          context);
  require(call, pgas::get(process_state.routes, *route, dest, source, count * kElementBytes));
}

// One element. Up to 8 bytes it is one access that never tears, also next to a thread of this
// process that waits for the word.
template <typename T>
inline void store_element(T* place, T value) {
  if constexpr (sizeof(T) <= sizeof(std::uint64_t))
    __atomic_store(place, &value, __ATOMIC_RELAXED);
  else
    *static_cast<volatile T*>(place) = value;
}
template <typename T>
inline T load_element(const T* place) {
  if constexpr (sizeof(T) <= sizeof(std::uint64_t)) {
    T value;
    __atomic_load(place, &value, __ATOMIC_RELAXED);
    return value;
  } else {
    return *static_cast<const volatile T*>(place);
  }
}

// For a route that is direct.
template <typename T>
inline void put_by(const Route& route, T* dest, T value) {
  store_element(route.address(dest), value);
  route.notify();
}
template <typename T>
inline T get_by(const Route& route, const T* source) {
  const T value = load_element(route.address(source));
  pgas::complete_get();
  return value;
}

template <typename T>
[[gnu::noinline]] void put_value_elsewhere(const char* call, T* dest, T value, int pe,
                                           ContextNumber context) {
  if (only_counts()) [[likely]] {
    if (const Route* route = process_state.routes.find_mapped_recorded<sizeof(T)>(dest, pe)) {
      put_by(*route, dest, value);
      return count_call(CallKind::kPut, sizeof(T));
    }
  }
  move_slow_path<CallKind::kPut>(call, dest, &value, sizeof(T), pe, context);
}
template <typename T>
[[gnu::noinline]] T get_value_elsewhere(const char* call, const T* source, int pe,
                                        ContextNumber context) {
  if (only_counts()) [[likely]] {
    if (const Route* route = process_state.routes.find_mapped_recorded<sizeof(T)>(source, pe)) {
      count_call(CallKind::kGet, sizeof(T));
      return get_by(*route, source);
    }
  }
  T value;
  move_slow_path<CallKind::kGet>(call, &value, source, sizeof(T), pe, context);
  return value;
}

template <typename T>
inline void put_value(const char* call, T* dest, T value, int pe,
                      ContextNumber context = kDefaultContext) {
  const Route* route = process_state.routes.find_mapped<sizeof(T)>(dest, pe);
  if (route == nullptr) [[unlikely]]
    return put_value_elsewhere(call, dest, value, pe, context);
  put_by(*route, dest, value);
}

template <typename T>
inline T get_value_once(const char* call, const T* source, int pe, ContextNumber context) {
  const Route* route = process_state.routes.find_mapped<sizeof(T)>(source, pe);
  if (route == nullptr) [[unlikely]]
    return get_value_elsewhere(call, source, pe, context);
  return get_by(*route, source);
}

// A noted look.
template <typename T>
[[gnu::noinline]] T get_own_value(const char* call, const T* source, int pe,
                                  ContextNumber context) {
  return noted(source, [=] { return get_value_once(call, source, pe, context); });
}

template <typename T>
inline T get_value(const char* call, const T* source, int pe,
                   ContextNumber context = kDefaultContext) {
  if constexpr (sizeof(T) <= sizeof(std::uint64_t))  // no longer value is a flag
    if (has_to_note(pe)) [[unlikely]]
      return get_own_value(call, source, pe, context);
  return get_value_once(call, source, pe, context);
}

}  // namespace memspan::capi
