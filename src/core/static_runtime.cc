// SPDX-License-Identifier: Apache-2.0
// For binaries with a libstdc++ of their own. Its std::random_device, which comes along with
// std::string whether it is used or not, needs arc4random of glibc 2.36; this definition, which the
// linker finds first, lets the binaries run with older ones.
#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number)
    if (errno != EINTR) std::abort();
  return number;
}
