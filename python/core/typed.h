// SPDX-License-Identifier: Apache-2.0
// Functions that there are for each type, memspan._core.typed, under the names of both generations:
// shmem_int32_put and aclshmem_int32_put.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "in_lines.h"
#include "places.h"

namespace memspan::python {

namespace nb = nanobind;

// Saturates: a product that overflows is larger than any memory.
inline std::size_t bytes_of(std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  return __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes;
}

// A function under its full name, "shmem_int32_put", with what help() says.
template <typename Function, typename... Arguments>
void def_named(nb::module_& module, const std::string& full, const std::string& says,
               Function&& function, const Arguments&... arguments) {
  module.def(full.c_str(), std::forward<Function>(function), arguments..., in_lines(says).c_str());
}

// One of both names, "int32_put".
template <typename Function, typename... Arguments>
void def_typed(nb::module_& module, const std::string& name, const std::string& says,
               Function&& function, const Arguments&... arguments) {
  const std::string full = "shmem_" + name;
  def_named(module, full, says, std::forward<Function>(function), arguments...);
  module.attr(("acl" + full).c_str()) = module.attr(full.c_str());
}

template <typename T>
struct Typed {
  nb::module_& module;
  std::string name;

  template <typename Function, typename... Arguments>
  void def(const std::string& rest, const std::string& says, Function&& function,
           const Arguments&... arguments) {
    def_typed(module, name + rest, says, std::forward<Function>(function), arguments...);
  }
  static T* words(const Place& place, const char* argument, std::size_t count) {
    return place.get<T>(argument, bytes_of(count, sizeof(T)));
  }
  // Of this process alone.
  static T* local_words(const Place& place, const char* argument, std::size_t count) {
    return place.get_local<T>(argument, bytes_of(count, sizeof(T)));
  }
};

// How the sentences speak of an element: "4 bytes", "1 byte".
inline std::string bytes_in_words(std::size_t bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}
inline std::string word_of(std::size_t bytes) {
  return "word of " + bytes_in_words(bytes);
}

}  // namespace memspan::python

#define MEMSPAN_ALL_TYPES(apply)                                                               \
  apply(float, float) apply(double, double) apply(char, char) apply(int8, std::int8_t)         \
      apply(int16, std::int16_t) apply(int32, std::int32_t) apply(int64, std::int64_t)         \
          apply(uint8, std::uint8_t) apply(uint16, std::uint16_t) apply(uint32, std::uint32_t) \
              apply(uint64, std::uint64_t)

#define MEMSPAN_WORD_TYPES(apply)                                                    \
  apply(int32, std::int32_t) apply(int64, std::int64_t) apply(uint32, std::uint32_t) \
      apply(uint64, std::uint64_t)

#define MEMSPAN_INTEGER_TYPES(apply)                                                     \
  apply(int8, std::int8_t) apply(int16, std::int16_t) apply(int32, std::int32_t)         \
      apply(int64, std::int64_t) apply(uint8, std::uint8_t) apply(uint16, std::uint16_t) \
          apply(uint32, std::uint32_t) apply(uint64, std::uint64_t)
