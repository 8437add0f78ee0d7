// SPDX-License-Identifier: Apache-2.0
// Modules of the library that are separate shared objects, because few processes need the libraries
// that they are linked with. They are beside the library or in its subfolder memspan. For a program
// the folder is ../lib, ../lib64 or Debian's ../lib/x86_64-linux-gnu.
#pragma once

#include "core/status.h"

namespace memspan::inline core {

// The path of an installed module; empty if it is missing. Loads nothing.
std::string find_module(const char* file);

// Loads a module for good and returns the address of `symbol`. kNotSupported names what is missing.
Result<void*> load_module(const char* file, const char* symbol);

}  // namespace memspan::inline core
