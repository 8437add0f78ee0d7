// SPDX-License-Identifier: Apache-2.0
#include "core/random.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>

#include "core/status.h"

namespace memspan::inline core {

std::string to_hex(std::string_view bytes) {
  const auto* const first = reinterpret_cast<const unsigned char*>(bytes.data());
  return fmt::format("{:02x}", fmt::join(first, first + bytes.size(), ""));
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
  MEMSPAN_CHECK(getentropy(&number, sizeof number) == 0);
  return number;
}

std::string random_hex(std::size_t bytes) {
  std::string raw(bytes, '\0');
  MEMSPAN_CHECK(getentropy(raw.data(), bytes) == 0);
  return to_hex(raw);
}

}  // namespace memspan::inline core
