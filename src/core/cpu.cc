// SPDX-License-Identifier: Apache-2.0
#include "core/cpu.h"

#include <sched.h>
#include <unistd.h>

namespace memspan {

int usable_cores() {
  // The call fails if the mask has more cores than cpu_set_t. Then the online count is used.
  cpu_set_t mask{};
  if (sched_getaffinity(0, sizeof mask, &mask) == 0 && CPU_COUNT(&mask) > 0)
    return CPU_COUNT(&mask);
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<int>(online) : 1;
}

CoreSet usable_core_set() {
  static_assert(CPU_SETSIZE == kMostCores);
  CoreSet cores;
  cpu_set_t mask{};
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return cores.set();
  for (std::size_t core = 0; core < kMostCores; ++core) cores[core] = CPU_ISSET(core, &mask);
  return cores;
}

}  // namespace memspan
