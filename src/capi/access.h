// SPDX-License-Identifier: Apache-2.0
// The way from a call's arguments to a Route: what all data-moving functions begin with. In line,
// so that the good case is a few compares; everything else ends the process out of line.
#pragma once

#include <limits>

#include "capi/failures.h"
#include "capi/out_of_memory.h"
#include "capi/process_state.h"

namespace memspan::capi {

// Saturates on overflow: no memory has so many bytes.
inline std::size_t bytes_of(std::size_t count, std::size_t element_bytes) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, element_bytes, &bytes)) [[unlikely]]
    return std::numeric_limits<std::size_t>::max();
  return bytes;
}

// From the first byte to the last of `count` blocks that begin `step_bytes` apart; also saturates.
inline std::size_t span_of(std::size_t count, std::size_t step_bytes, std::size_t block_bytes) {
  if (count == 0) return 0;
  std::size_t bytes = 0;
  if (__builtin_add_overflow(bytes_of(count - 1, step_bytes), block_bytes, &bytes))
    return std::numeric_limits<std::size_t>::max();
  return bytes;
}

// No object is in the first page: NULL, or a member of what a NULL points to.
inline bool is_null(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) < 4096;
}
inline void require_not_null(const char* call, const char* argument, const void* address) {
  if (is_null(address)) [[unlikely]]
    end_for_null(call, argument, address);
}

template <typename T>
bool is_aligned(const T* word) {
  return reinterpret_cast<std::uintptr_t>(word) % sizeof(T) == 0;
}
template <typename T>
void require_aligned(const char* call, const char* argument, const T* word) {
  if (!is_aligned(word)) [[unlikely]]
    end_for_misaligned_word(call, argument, word, sizeof(T));
}

// The way to `pe`'s copy of [address, address + bytes), bytes > 0.
inline const Route& reach(const char* call, const char* argument, const void* address,
                          std::size_t bytes, int pe) {
  const Route* route = process_state.routes.find(address, bytes, pe);
  if (route == nullptr) [[unlikely]]
    end_for_bad_access(call, argument, address, bytes, pe);
  return *route;
}

// The address at which this process maps `pe`'s copy of a symmetric address, or null. Only
// the device may use addresses of device memory.
[[gnu::cold]] void* mapped_address(void* address, int pe);
[[gnu::cold]] void* host_address_beside_device(void* address, int pe);
// Like mapped_address(), but only for host memory.
inline void* host_address(void* address, int pe) {
  const RouteTable& routes = process_state.routes;
  if (routes.device != nullptr) [[unlikely]]
    return host_address_beside_device(address, pe);
  const Route* const route = routes.find(address, 1, pe);
  return route == nullptr || !route->is_direct() ? nullptr : route->address(address);
}

// Slow paths of the functions below, for memory outside the host's heap.
[[gnu::cold]] void require_host_memory_elsewhere(const char* call, const char* argument,
                                                 const void* address, std::size_t bytes);
[[gnu::cold]] bool is_on_device(const char* call, const char* argument, const void* address,
                                std::size_t bytes);
[[gnu::cold]] void copy_from_device(const char* call, void* to, const void* from,
                                    std::size_t bytes);

// The same for a word that is accessed atomically.
template <typename T>
const Route& reach_word(const char* call, const char* argument, const T* word, int pe) {
  const Route& route = reach(call, argument, word, sizeof(T), pe);
  require_aligned(call, argument, word);
  return route;
}

// Ends the process unless [address, address + bytes) is symmetric; no bytes need no address.
inline void require_symmetric(const char* call, const char* argument, const void* address,
                              std::size_t bytes) {
  if (bytes != 0) reach(call, argument, address, bytes, 0);
}

// The same for what the host loads, stores and waits for itself: memory of the host.
inline void require_host_memory(const char* call, const char* argument, const void* address,
                                std::size_t bytes) {
  const RouteTable& routes = process_state.routes;
  if (!routes.heap.contains(address, bytes) || routes.peers == 0) [[unlikely]]
    require_host_memory_elsewhere(call, argument, address, bytes);
}
template <typename T>
void require_host_word(const char* call, const char* argument, const T* word) {
  require_host_memory(call, argument, word, sizeof(T));
  require_aligned(call, argument, word);
}

// Whether a word of this process is memory of a device, which is only copied; ends the process when
// it is not symmetric.
template <typename T>
bool is_device_word(const char* call, const char* argument, const T* word) {
  const RouteTable& routes = process_state.routes;
  bool is_device = false;
  if (!routes.heap.contains(word, sizeof(T)) || routes.peers == 0) [[unlikely]]
    is_device = is_on_device(call, argument, word, sizeof(T));
  require_aligned(call, argument, word);
  return is_device;
}

// This process's copy of a word in device memory.
template <typename T>
[[gnu::cold]] T copy_of_device_word(const char* call, const T* word) {
  T value{};
  copy_from_device(call, &value, word, sizeof value);
  return value;
}

}  // namespace memspan::capi
