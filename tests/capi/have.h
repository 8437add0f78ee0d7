// SPDX-License-Identifier: Apache-2.0
// For lists of functions that must be there with their types.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>

namespace memspan::capi {

// Compiles for the exact type alone.
template <typename Type>
bool have(Type* function) {
  Type* const volatile there = function;
  return there != nullptr;
}

// How many of a list are there; says so.
template <std::size_t size>
int count(const bool (&list)[size]) {
  const auto there = static_cast<int>(std::count(list, list + size, true));
  std::printf("%d signatures\n", there);
  return there;
}

}  // namespace memspan::capi

#define HAVE(name, ...) memspan::capi::have<__VA_ARGS__>(name)
