// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM's teams are numbers, 0 is all; the others are the handles of OpenSHMEM.
#pragma once

#include <shmem.h>

#include <cstdint>

namespace memspan::python {

inline shmem_team_t team_of(int number) {
  if (number == 0) return SHMEM_TEAM_WORLD;
  return number < 0 ? SHMEM_TEAM_INVALID
                    : reinterpret_cast<shmem_team_t>(static_cast<std::uintptr_t>(number));
}

}  // namespace memspan::python
