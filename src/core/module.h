// SPDX-License-Identifier: Apache-2.0
// Parts of the library that are shared objects of their own, since few processes need what they are
// linked with. They stand beside the library or in the folder memspan there; for
// a program that is ../lib, ../lib64 or Debian's ../lib/x86_64-linux-gnu.
#pragma once

#include <string>

#include "core/status.h"

namespace memspan {

// The path of a module that is there; empty if it is not. Nothing is loaded.
std::string find_module(const char* file);

// Loads it for good and gives the address of that symbol. kNotSupported says what is missing.
Result<void*> load_module(const char* file, const char* symbol);

}  // namespace memspan
