// SPDX-License-Identifier: Apache-2.0
// Handles of the C interfaces: ints in Python, 0 for NULL.
#pragma once

#include <cstdint>

namespace memspan::python {

using Handle = std::uintptr_t;

inline void* pointer_of(Handle handle) {
  return reinterpret_cast<void*>(handle);
}
inline Handle handle_of(const void* pointer) {
  return reinterpret_cast<Handle>(pointer);
}

}  // namespace memspan::python
