// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/status.h"

namespace memspan::launcher {

// The code that a shell returns in the same situation.
inline int exit_code(const Status& status) {
  switch (status.code()) {
    case Code::kInvalidArgument:
      return 2;
    case Code::kNotFound:
      return 127;
    default:
      return 1;
  }
}

}  // namespace memspan::launcher
