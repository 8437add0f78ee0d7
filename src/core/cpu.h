// SPDX-License-Identifier: Apache-2.0
// What the library asks about the processor: its usable cores, and a pause for busy waits.
#pragma once

#include <bitset>
#include <cstddef>

namespace memspan {

inline constexpr std::size_t kCacheLine = 64;
// Two lines: the adjacent-line prefetcher fetches pairs. It keeps flags of different writers apart.
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

// A set of core numbers, like the kernel's affinity masks. A value.
inline constexpr int kMostCores = 1024;
using CoreSet = std::bitset<kMostCores>;
// This thread's affinity mask; all cores if the machine has more than kMostCores.
CoreSet usable_core_set();

}  // namespace memspan
