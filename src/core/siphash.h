// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash. Without the key it cannot be computed,
// and guesses succeed only by chance. It seals frames; loading OpenSSL for that would cost more
// than the rest of a start. The tests compare it with OpenSSL's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace memspan {

struct SipKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  // Parses 32 hexadecimal digits, the low byte first; empty for anything else.
  static std::optional<SipKey> from_hex(std::string_view text);
  bool operator==(const SipKey&) const = default;
};

std::uint64_t siphash(const SipKey& key, std::span<const std::byte> bytes);

}  // namespace memspan
