// SPDX-License-Identifier: Apache-2.0
// What we need to know of the processor: how many cores we may use, and how to wait politely.
#pragma once

#include <bitset>
#include <cstddef>

namespace memspan {

inline constexpr std::size_t kCacheLine = 64;
// Two lines: the adjacent-line prefetcher fetches pairs, so flags of different writers stand apart.
inline constexpr std::size_t kFalseSharingRange = 128;

inline void cpu_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// Cores in this process's affinity mask, at least 1.
int usable_cores();

// A set of cores by number, as the kernel's affinity masks. A value.
inline constexpr int kMostCores = 1024;
using CoreSet = std::bitset<kMostCores>;
// This thread's affinity mask. Of a machine with more cores: all.
CoreSet usable_core_set();

}  // namespace memspan
