// SPDX-License-Identifier: Apache-2.0
// The address windows of the symmetric heaps and of pools, and the distance between the ranks'
// parts of the heap memfd. The numbers are fixed, so that processes agree without talking.
//
//   window  0x2800'0000'0000 … 0x5500'0000'0000 (free under plain and ASan builds)
//           0x7e80'0000'0000 + 512 GiB           (free under TSan)
//
// The symmetric heap begins at the bottom, the heap in device memory above it, and MemFabric's
// pools above both.
//
// One rank's part, in the memfd and in the address space:
//   | internal area (team synchronisation, scratch) | symmetric heap of the user |
// and at the end of its part of the memfd, mapped elsewhere:
//   | global and static variables of the program |
#pragma once

#include <cstddef>
#include <cstdint>

namespace memspan {

#if defined(__SANITIZE_THREAD__)
#define MEMSPAN_TSAN_ 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MEMSPAN_TSAN_ 1
#endif
#endif

#if defined(MEMSPAN_TSAN_)
inline constexpr std::uint64_t kHeapWindow = 0x7e80'0000'0000;
inline constexpr std::uint64_t kHeapWindowBytes = std::uint64_t{512} << 30;
inline constexpr std::uint64_t kDeviceHeapWindow = kHeapWindow + (std::uint64_t{128} << 30);
inline constexpr std::uint64_t kPoolWindow = kHeapWindow + (std::uint64_t{256} << 30);
#else
inline constexpr std::uint64_t kHeapWindow = 0x2800'0000'0000;
inline constexpr std::uint64_t kHeapWindowBytes = 0x2d00'0000'0000;
inline constexpr std::uint64_t kDeviceHeapWindow = 0x2c00'0000'0000;
inline constexpr std::uint64_t kPoolWindow = 0x3000'0000'0000;
#endif
inline constexpr std::uint64_t kDeviceHeapWindowBytes = kPoolWindow - kDeviceHeapWindow;
inline constexpr std::uint64_t kPoolWindowBytes = kHeapWindow + kHeapWindowBytes - kPoolWindow;

// The library's own part of each rank's segment; only touched pages cost memory.
inline constexpr std::size_t kInternalBytes = std::size_t{64} << 20;
inline constexpr std::size_t kStaticSegmentBytes = std::size_t{8} << 30;
inline constexpr std::size_t kHeapGranularity = std::size_t{2} << 20;

// Bytes between two ranks' parts of the heap memfd: enough for a heap as large as all of memory,
// since a memfd's holes cost nothing. `memory_bytes` is the machine's.
std::uint64_t heap_file_stride(std::uint64_t memory_bytes);

}  // namespace memspan
