// SPDX-License-Identifier: Apache-2.0
// How much one store holds. A request beyond it is kOutOfMemory and changes nothing.
#pragma once

#include <cstddef>

namespace memspan {

// A value.
struct StoreQuota {
  std::size_t keys = std::size_t{128} << 10;  // as many waits, and as many groups
  std::size_t bytes = std::size_t{1} << 30;   // of keys, values and waited-for keys; as many again
                                              // of what members of groups bring
  std::size_t watches = 4096;
};

}  // namespace memspan
