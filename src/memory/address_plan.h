// SPDX-License-Identifier: Apache-2.0
// The address windows of the symmetric heaps and of pools, and the distance between the ranks'
// parts of the heap memfd. The numbers are fixed, so that processes agree without talking.
//
//   window  0x2800'0000'0000 … 0x5500'0000'0000 (free under plain and ASan builds)
//           0x7e80'0000'0000 + 512 GiB           (free under TSan)
//
// One rank's part, in the memfd and in the address space:
//   | internal area (team synchronisation, scratch) | symmetric heap of the user |
// and at the end of its part of the memfd, mapped elsewhere:
//   | global and static variables of the program |
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace memspan::inline memory {

// The heap, above it the heap in device memory, and pools above both.
struct AddressWindows {
  std::uint64_t heap;
  std::uint64_t heap_bytes;  // together with what is above it
  std::uint64_t device_heap;
  std::uint64_t pool;
  constexpr std::uint64_t device_heap_bytes() const { return pool - device_heap; }
  constexpr std::uint64_t pool_bytes() const { return heap + heap_bytes - pool; }
};

// A program may be compiled with -fsanitize=thread while the library is not.
// NOLINTNEXTLINE(bugprone-reserved-identifier): it is TSan's
extern "C" __attribute__((weak)) void __tsan_init();
inline AddressWindows address_windows() {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  if (&__tsan_init != nullptr)
    return {0x7e80'0000'0000, 512 * kGiB, 0x7e80'0000'0000 + 128 * kGiB,
            0x7e80'0000'0000 + 256 * kGiB};
  return {0x2800'0000'0000, 0x2d00'0000'0000, 0x2c00'0000'0000, 0x3000'0000'0000};
}

// The library's own part of each rank's segment; only touched pages cost memory.
inline constexpr std::size_t kInternalBytes = std::size_t{64} << 20;
inline constexpr std::size_t kStaticSegmentBytes = std::size_t{8} << 30;
inline constexpr std::size_t kHeapGranularity = std::size_t{2} << 20;

// Bytes between two ranks' parts of the heap memfd: enough for a heap as large as all of memory,
// since a memfd's holes cost nothing. `memory_bytes` is the machine's.
constexpr std::uint64_t heap_file_stride(std::uint64_t memory_bytes) {
  return std::bit_ceil(memory_bytes + kInternalBytes + kStaticSegmentBytes);
}

}  // namespace memspan::inline memory
