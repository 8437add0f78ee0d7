// SPDX-License-Identifier: Apache-2.0
// Python strings as C strings, which end at a NUL byte.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace memspan::python {

// Valid as long as `text`. ValueError when it contains a NUL byte.
inline const char* c_text(const char* name, const std::string& text) {
  if (text.find('\0') != std::string::npos)
    throw nanobind::value_error((std::string(name) + " has a NUL byte").c_str());
  return text.c_str();
}

}  // namespace memspan::python
