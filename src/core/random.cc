// SPDX-License-Identifier: Apache-2.0
#include "core/random.h"

#include <sys/random.h>

#include <cerrno>

#include "core/check.h"
#include "core/hex.h"

namespace memspan {
namespace {

void fill(void* place, std::size_t bytes) {
  for (std::size_t have = 0; have < bytes;) {
    ssize_t got = getrandom(static_cast<char*>(place) + have, bytes - have, 0);
    if (got > 0) have += static_cast<std::size_t>(got);
    MEMSPAN_CHECK(got > 0 || errno == EINTR);
  }
}

}  // namespace

std::uint64_t random_number() {
  std::uint64_t number = 0;
  fill(&number, sizeof number);
  return number;
}

std::string random_hex(std::size_t bytes) {
  std::string raw(bytes, '\0');
  fill(raw.data(), bytes);
  return to_hex(raw);
}

}  // namespace memspan
