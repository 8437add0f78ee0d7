// SPDX-License-Identifier: Apache-2.0
// Enumerations as callers give them: any number may stand in one that C code filled, and reading
// such a one as what it is declared to be is undefined.
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
