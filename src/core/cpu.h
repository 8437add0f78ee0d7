// SPDX-License-Identifier: Apache-2.0
// What the library asks about the processor: its usable cores, and a pause for busy waits.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <bitset>
#include <cstddef>

namespace memspan::inline core {

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
inline int usable_cores() {
  // The call fails if the mask has more cores than cpu_set_t. Then the online count is used.
  cpu_set_t mask{};
  if (sched_getaffinity(0, sizeof mask, &mask) == 0 && CPU_COUNT(&mask) > 0)
    return CPU_COUNT(&mask);
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<int>(online) : 1;
}

// A set of core numbers, like the kernel's affinity masks. A value.
inline constexpr int kMostCores = 1024;
using CoreSet = std::bitset<kMostCores>;
// This thread's affinity mask; all cores if the machine has more than kMostCores.
inline CoreSet usable_core_set() {
  static_assert(CPU_SETSIZE == kMostCores);
  CoreSet cores;
  cpu_set_t mask{};
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return cores.set();
  for (std::size_t core = 0; core < kMostCores; ++core) cores[core] = CPU_ISSET(core, &mask);
  return cores;
}

}  // namespace memspan::inline core
