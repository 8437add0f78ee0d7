// SPDX-License-Identifier: Apache-2.0
// Put and get as the faces have them. In line is the one case that has to be fast: an address that
// is symmetric and a peer whose memory is mapped. Everything else (no bytes, a mistake, a link) is
// behind one jump, with the same arguments, to the _otherwise functions.
#pragma once

#include <cstddef>

#include "capi/access.h"
#include "pgas/rma.h"

namespace memspan::capi {

[[gnu::cold]] void put_otherwise(const char* call, void* dest, const void* source,
                                 std::size_t bytes, int pe);
[[gnu::cold]] void get_otherwise(const char* call, void* dest, const void* source,
                                 std::size_t bytes, int pe);

// `count` elements.
template <std::size_t kElementBytes>
inline void put(const char* call, void* dest, const void* source, std::size_t count, int pe) {
  const Route* route = process_state.routes.find_mapped<kElementBytes>(dest, count, pe);
  if (route == nullptr || is_null(source)) [[unlikely]]
    return put_otherwise(call, dest, source, bytes_of(count, kElementBytes), pe);
  require(call, pgas::put(process_state.routes, *route, dest, source, count * kElementBytes));
}

template <std::size_t kElementBytes>
inline void get(const char* call, void* dest, const void* source, std::size_t count, int pe) {
  const Route* route = process_state.routes.find_mapped<kElementBytes>(source, count, pe);
  if (route == nullptr || is_null(dest)) [[unlikely]]
    return get_otherwise(call, dest, source, bytes_of(count, kElementBytes), pe);
  require(call, pgas::get(process_state.routes, *route, dest, source, count * kElementBytes));
}

// By value, so that the in-line path needs no place in memory for it.
template <typename T>
[[gnu::cold, gnu::noinline]] void put_value_otherwise(const char* call, T* dest, T value, int pe) {
  put_otherwise(call, dest, &value, sizeof(T), pe);
}
template <typename T>
[[gnu::cold, gnu::noinline]] T get_value_otherwise(const char* call, const T* source, int pe) {
  T value;
  get_otherwise(call, &value, source, sizeof(T), pe);
  return value;
}

// One element. Up to 8 bytes it is one store that never tears.
template <typename T>
inline void put_value(const char* call, T* dest, T value, int pe) {
  const Route* route = process_state.routes.find_mapped<sizeof(T)>(dest, pe);
  if (route == nullptr) [[unlikely]]
    return put_value_otherwise(call, dest, value, pe);
  *static_cast<volatile T*>(route->address(dest)) = value;
  route->notify();
}

template <typename T>
inline T get_value(const char* call, const T* source, int pe) {
  const Route* route = process_state.routes.find_mapped<sizeof(T)>(source, pe);
  if (route == nullptr) [[unlikely]]
    return get_value_otherwise(call, source, pe);
  const T value = *static_cast<const volatile T*>(route->address(source));
  pgas::complete_get();
  return value;
}

}  // namespace memspan::capi
