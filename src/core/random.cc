// SPDX-License-Identifier: Apache-2.0
#include "core/random.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <iterator>

#include "core/check.h"

namespace memspan {
namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

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
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = digit_of(text[i]);
    const int low = digit_of(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(high * 16 + low));
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
