// SPDX-License-Identifier: Apache-2.0
// Reads enumerations that callers give. C code may fill one with any number, which C++ may not load
// as the enumeration.
#pragma once

#include <cstring>

namespace memspan::capi {

template <typename Enumeration>
unsigned number_of(const Enumeration& given) {
  static_assert(sizeof given == sizeof(unsigned));
  unsigned number = 0;
  std::memcpy(&number, &given, sizeof number);
  return number;
}

}  // namespace memspan::capi
