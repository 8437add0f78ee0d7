// SPDX-License-Identifier: Apache-2.0
#include "core/random.h"

#include <sys/random.h>

#include <cerrno>

#include "core/check.h"
#include "core/hex.h"

namespace memspan {

std::string random_hex(std::size_t bytes) {
  std::string raw(bytes, '\0');
  for (std::size_t have = 0; have < bytes;) {
    ssize_t got = getrandom(raw.data() + have, bytes - have, 0);
    if (got > 0) have += static_cast<std::size_t>(got);
    MEMSPAN_CHECK(got > 0 || errno == EINTR);
  }
  return to_hex(raw);
}

}  // namespace memspan
