// SPDX-License-Identifier: Apache-2.0
// A call that has to report a lack of memory as a Status: on threads of the library, which no
// exception may leave, and where what was done before has to be undone.
#pragma once

#include <new>

#include "core/status.h"

namespace memspan {

// Returns the result of `call()`, or kOutOfMemory for std::bad_alloc.
template <typename Call>
Status caught(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, "out of memory"};
  }
}

}  // namespace memspan
