// SPDX-License-Identifier: Apache-2.0
// Copies bytes with the processor. The sizes of machine words are one load and one store, in line,
// so that an 8-byte word never tears. Up to a few cache lines the C library is fastest. Larger
// copies use our own loops with the widest vectors of the processor, or the C library without
// vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memspan {

// Below this size memcpy was the fastest.
inline constexpr std::size_t kLargeCopyBytes = 256;

// Copies of at least this size bypass the caches; SIZE_MAX: never. A figure of this machine.
std::size_t copies_past_caches_from();

// For kLargeCopyBytes or more. The ranges must not overlap.
void copy_large(void* to, const void* from, std::size_t bytes);

// Bypasses the caches from kLargeCopyBytes on, for one of many copies that together exceed the
// caches. Only order_copies_past_caches(), before the first such copy and after the last, orders
// its stores with others. The ranges must not overlap.
void copy_past_caches(void* to, const void* from, std::size_t bytes);
void order_copies_past_caches();

// Prefetches the beginning of a copy that will come soon. Never fails, whatever the addresses.
inline void prefetch_copy(const void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kMost = 512;  // the processor prefetches the rest by itself
  const std::size_t end = bytes < kMost ? bytes : kMost;
  for (std::size_t i = 0; i < end; i += kLine) {
    __builtin_prefetch(static_cast<const char*>(from) + i);
    if (to != nullptr) __builtin_prefetch(static_cast<const char*>(to) + i, 1);
  }
}

// The ranges must not overlap. Stores are ordered like plain stores.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes == 8) [[likely]] {  // faster than the table that a switch may become
    std::memcpy(to, from, 8);
    return;
  }
  switch (bytes) {
    case 0:
      return;  // both pointers may be null then
    case 1:
      std::memcpy(to, from, 1);
      return;
    case 2:
      std::memcpy(to, from, 2);
      return;
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 16:
      std::memcpy(to, from, 16);
      return;
    default:
      if (bytes < kLargeCopyBytes)
        std::memcpy(to, from, bytes);
      else
        copy_large(to, from, bytes);
      return;
  }
}

}  // namespace memspan
