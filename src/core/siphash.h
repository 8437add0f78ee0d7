// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash that nobody computes, or guesses better
// than by chance, without the key. For seals of frames, where OpenSSL would cost a start more than
// all else; the tests compare it with OpenSSL's.
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

  // Of 32 hexadecimal digits, the low byte first; empty for anything else.
  static std::optional<SipKey> from_hex(std::string_view text);
  bool operator==(const SipKey&) const = default;
};

std::uint64_t siphash(const SipKey& key, std::span<const std::byte> bytes);

}  // namespace memspan
