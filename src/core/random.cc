// SPDX-License-Identifier: Apache-2.0
#include "core/random.h"

#include <sys/random.h>

#include <cerrno>

#include "core/check.h"

namespace memspan {

std::string random_hex(std::size_t bytes) {
  std::string raw(bytes, '\0');
  for (std::size_t have = 0; have < bytes;) {
    ssize_t got = getrandom(raw.data() + have, bytes - have, 0);
    if (got > 0) have += static_cast<std::size_t>(got);
    MEMSPAN_CHECK(got > 0 || errno == EINTR);
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes);
  for (unsigned char byte : raw) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

}  // namespace memspan
