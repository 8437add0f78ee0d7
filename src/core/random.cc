// SPDX-License-Identifier: Apache-2.0
#include "core/random.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <charconv>
#include <iterator>

#include "core/status.h"

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

std::string to_hex(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes)
    fmt::format_to(std::back_inserter(text), "{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::optional<std::string> from_hex(std::string_view text) {
  if (text.size() % 2 != 0 || text.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    unsigned char byte = 0;
    std::from_chars(text.data() + i, text.data() + i + 2, byte, 16);
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

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
