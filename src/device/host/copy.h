// SPDX-License-Identifier: Apache-2.0
// Copying bytes with the processor. Small sizes that are known machine words are one load and one
// store, in line, so that an 8-byte word never tears; everything else goes to the C library, whose
// memcpy picks vector, `rep movsb` or non-temporal stores by the machine's cache sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memspan {

// The ranges must not overlap. Stores are ordered as plain stores are.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
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
    case 8:
      std::memcpy(to, from, 8);
      return;
    case 16:
      std::memcpy(to, from, 16);
      return;
    default:
      std::memcpy(to, from, bytes);
      return;
  }
}

}  // namespace memspan
