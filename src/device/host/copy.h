// SPDX-License-Identifier: Apache-2.0
// Copying bytes with the processor. Small sizes that are known machine words are one load and one
// store, in line, so that an 8-byte word never tears. Up to a few cache lines the C library is
// quickest; beyond, our own loops, with the widest vectors that the processor is known to have, or
// the C library again where there are none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memspan {

// Below this nothing was faster than memcpy.
inline constexpr std::size_t kLargeCopyBytes = 256;

// From so many bytes on copies go past the caches; SIZE_MAX: never. A figure of this machine.
std::size_t copies_past_caches_from();

// From kLargeCopyBytes on. The ranges must not overlap.
void copy_large(void* to, const void* from, std::size_t bytes);

// One of many copies that are together too much for the caches: past them, whatever its own size.
// Its stores are ordered with no others but by order_copies_past_caches(), before the first such
// copy and after the last. The ranges must not overlap.
void copy_past_caches(void* to, const void* from, std::size_t bytes);
void order_copies_past_caches();

// For a copy that will come soon: its beginning is on its way into the caches. Never fails,
// whatever the addresses.
inline void prefetch_copy(const void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kMost = 512;  // the processor finds out by itself where more is to come
  const std::size_t end = bytes < kMost ? bytes : kMost;
  for (std::size_t i = 0; i < end; i += kLine) {
    __builtin_prefetch(static_cast<const char*>(from) + i);
    if (to != nullptr) __builtin_prefetch(static_cast<const char*>(to) + i, 1);
  }
}

// The ranges must not overlap. Stores are ordered as plain stores are.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes == 8) [[likely]] {  // quicker than by the table that a switch may become
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
