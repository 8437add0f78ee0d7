// SPDX-License-Identifier: Apache-2.0
// Python strings as C strings, which end at a NUL byte, and sizes as C has them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace memspan::python {

// Valid as long as `text`. ValueError when it contains a NUL byte.
inline const char* c_text(const char* name, const std::string& text) {
  if (text.find('\0') != std::string::npos)
    throw nanobind::value_error((std::string(name) + " has a NUL byte").c_str());
  return text.c_str();
}

// ValueError for what a number of 32 bits cannot hold.
inline std::uint32_t c_size(const char* what, std::size_t size, const char* unit = "bytes") {
  if (size > UINT32_MAX)
    throw nanobind::value_error((std::string(what) + " has " + std::to_string(size) + " " + unit +
                                 ", allowed are up to 4294967295")
                                    .c_str());
  return static_cast<std::uint32_t>(size);
}

}  // namespace memspan::python
