// SPDX-License-Identifier: Apache-2.0
// Limits what a TLS client may announce before it has proved anything.
//
// OpenSSL allocates a handshake message when its first bytes arrive, and accepts up to 128 KiB. The
// plain messages of TLS 1.3 clients are hellos of a few hundred bytes. So each must fit in its
// record of at most 16 KiB.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace memspan {

// Sees the bytes of a handshake in pieces of any size. One thread at a time.
class TlsRecords {
 public:
  // Returns false from the first plain message on that exceeds its record.
  bool look_at(std::string_view bytes) {
    for (char byte : bytes) take(static_cast<unsigned char>(byte));
    return is_good_;
  }

 private:
  // A record: type, two bytes of version, two of length. Its content begins with the message's type
  // and three bytes of length.
  static constexpr std::size_t kHeader = 5;
  static constexpr std::size_t kMessageHeader = 4;
  static constexpr unsigned char kHandshake = 22;

  void take(unsigned char byte) {
    if (at_ < seen_.size()) seen_[at_] = byte;
    ++at_;
    if (at_ < kHeader) return;
    const std::size_t length = std::size_t{seen_[3]} << 8 | seen_[4];
    const bool is_plain = seen_[0] == kHandshake;
    if (is_plain && length < kMessageHeader) is_good_ = false;
    if (is_plain && at_ == seen_.size()) {
      const std::size_t message = std::size_t{seen_[6]} << 16 | seen_[7] << 8 | seen_[8];
      is_good_ = is_good_ && message <= length - kMessageHeader;
    }
    if (at_ == kHeader + length) at_ = 0;
  }

  std::array<unsigned char, kHeader + kMessageHeader> seen_ = {};
  std::size_t at_ = 0;  // received bytes of the record
  bool is_good_ = true;
};

}  // namespace memspan
