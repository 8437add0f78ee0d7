// SPDX-License-Identifier: Apache-2.0
// The requests that the processes of a job compare when they allocate together.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "pgas/team.h"

namespace memspan::pgas {

enum class Step : std::uint64_t {
  kAllocate = 1,
  kFree,
  kReallocate,
  kCommit,
  kAllocateOnDevice,
  kFreeOnDevice
};

// The request of one process: the step, and two numbers that describe it.
struct Request {
  Step step;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

// Compares the requests of all, and how they went (ok, or a Code): kInvalidArgument when they
// differ, else the first code that is not ok.
Status agree(Team& team, const char* what, const Request& mine, Code outcome);

// The own failure, which says most, otherwise the failure of all.
inline Status worse(const Status& own, const Status& all) {
  return own.is_ok() ? all : own;
}

}  // namespace memspan::pgas
