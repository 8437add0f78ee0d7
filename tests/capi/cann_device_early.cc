// SPDX-License-Identifier: Apache-2.0
// Every function that device code of CANN SHMEM had until December 2025 is there by its early name
// and with its type: a line of cann_device_early.inc for each signature of the 426; those that
// differ by the kind of memory alone are one there.
#include <shmem_api.h>

#include <cstdint>
#include <type_traits>

#include "have.h"

namespace {

// Events are of a wider type in version 1.5: a call with the early one compiles.
template <typename... Arguments, typename Function>
constexpr bool may_be_called(Function) {
  return std::is_invocable<Function, Arguments...>::value;
}
#define CALLED(name, ...)     \
  may_be_called<__VA_ARGS__>( \
      [](auto... arguments) -> decltype(name(arguments...)) { name(arguments...); })

const bool all[] = {
#include "cann_device_early.inc"
};

}  // namespace

int main() {
  return memspan::capi::count(all) == 400 ? 0 : 1;
}
