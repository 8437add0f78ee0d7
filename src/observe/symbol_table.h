// SPDX-License-Identifier: Apache-2.0
// Names of functions that dladdr() does not know, from the symbol table of a program or library
// that is not stripped: static functions, and ours that are not exported.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memspan {

struct FoundSymbol {
  char name[128] = {};       // as the compiler wrote it, cut to this size; empty: none
  std::uintptr_t begin = 0;  // the address of the function
};

// The function at `address` in `file`, which is mapped at `base`. For signal handlers: system calls
// only.
FoundSymbol find_symbol(const char* file, std::uintptr_t base, std::uintptr_t address);

}  // namespace memspan
