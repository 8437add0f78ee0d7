// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash. Without the key it cannot be computed,
// and guesses succeed only by chance. It seals frames; loading OpenSSL for that would cost more
// than the rest of a start. The tests compare it with OpenSSL's.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "core/random.h"

namespace memspan::inline core {

struct SipKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  // Parses 32 hexadecimal digits, the low byte first; empty for anything else.
  static std::optional<SipKey> from_hex(std::string_view text) {
    const auto bytes = memspan::from_hex(text);
    if (!bytes || bytes->size() != sizeof(SipKey)) return std::nullopt;
    SipKey key;
    std::memcpy(&key, bytes->data(), sizeof key);
    return key;
  }
  bool operator==(const SipKey&) const = default;
};

// The hash of the words that it has taken.
class SipState {
 public:
  explicit SipState(const SipKey& key)
      : v0_(key.low ^ 0x736f'6d65'7073'6575),
        v1_(key.high ^ 0x646f'7261'6e64'6f6d),
        v2_(key.low ^ 0x6c79'6765'6e65'7261),
        v3_(key.high ^ 0x7465'6462'7974'6573) {}

  void take(std::uint64_t word) {
    v3_ ^= word;
    round();
    round();
    v0_ ^= word;
  }
  std::uint64_t finish() {
    v2_ ^= 0xff;
    for (int i = 0; i < 4; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void round() {
    v0_ += v1_;
    v2_ += v3_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v1_;
    v0_ += v3_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ = std::rotl(v2_, 32);
  }
  std::uint64_t v0_, v1_, v2_, v3_;
};

// Both processors that we build for are little-endian.
inline std::uint64_t siphash(const SipKey& key, std::span<const std::byte> bytes) {
  SipState hash(key);
  std::uint64_t word = 0;
  std::size_t at = 0;
  for (; at + sizeof word <= bytes.size(); at += sizeof word) {
    std::memcpy(&word, bytes.data() + at, sizeof word);
    hash.take(word);
  }
  word = std::uint64_t{bytes.size() & 0xff} << 56;
  for (std::size_t i = 0; at + i < bytes.size(); ++i)
    word |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
  hash.take(word);
  return hash.finish();
}

}  // namespace memspan::inline core
