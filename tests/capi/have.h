// SPDX-License-Identifier: Apache-2.0
// For lists of functions that must be there with their types.
#pragma once

namespace memspan::capi {

// Compiles for the exact type alone.
template <typename Type>
bool have(Type* function) {
  Type* const volatile there = function;
  return there != nullptr;
}

}  // namespace memspan::capi

#define HAVE(name, ...) memspan::capi::have<__VA_ARGS__>(name)
