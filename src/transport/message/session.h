// SPDX-License-Identifier: Apache-2.0
// Restricts a connection of the transport `message` to two members.
//
// An owner gives members its secret through the store, which is encrypted. The connecting side
// draws a nonce and greets with it. Both derive a key for each direction from secret and nonce; the
// secret itself is never sent. The last eight bytes of every header are its seal: a keyed hash of
// the rest and of the frame's number. A frame that is forged, changed, repeated or out of order
// ends the connection before it has any effect. An owner accepts each nonce once: a
// recorded greeting opens nothing.
//
// Payloads are neither sealed nor encrypted.
#pragma once

#include <fmt/format.h>

#include <cstring>

#include "core/random.h"
#include "core/siphash.h"
#include "transport/message/protocol.h"

namespace memspan::inline transport {

// From the second frame on, seal() may run beside open(). One thread at a time calls open().
class Session {
 public:
  // The side that draws the nonce.
  static Session connecting(const SipKey& secret) {
    Session made(secret);
    const SipKey drawn = SipKey::from_hex(random_hex(sizeof(Nonce))).value();
    made.derive({drawn.low, drawn.high});
    return made;
  }

  // The side that learns the nonce from the first frame.
  static Session accepting(const SipKey& secret) {
    Session made(secret);
    made.accepts_ = true;
    return made;
  }

  const Nonce& nonce() const { return nonce_; }
  // Only a process that knows `secret` can make it for this connection. The connecting side proves
  // its identity by its own secret as an owner. The key makes it useless to other owners, although
  // they see it.
  std::uint64_t proof(const SipKey& secret) const {
    return hash(secret, nonce_, Purpose::kProof, accepts_ ? receives_.low : sends_.low);
  }
  // Seals the `sequence`-th frame that this side sends. An accepting side that has opened nothing
  // uses the key 0.
  void seal(FrameHeader& header, std::uint32_t sequence) const {
    const std::uint64_t seal = seal_of(sends_, header, sequence);
    std::memcpy(header.data() + kSealOffset, &seal, sizeof seal);
  }
  // Opens the `sequence`-th frame of the other side. kInvalidArgument: it is invalid or out of
  // order; kAuth: a greeting by a side that does not know the secret. An owner that rejects this
  // side's greeting may answer with a refusal under the key 0.
  Result<Frame> open(std::span<const std::byte, kFrameBytes> header, std::uint32_t sequence) {
    if (has_keys_ && is_sealed(receives_, header, sequence)) return decode(header);
    const bool is_first = sequence == 0;
    if (is_first && !accepts_ && is_sealed({}, header, sequence)) {
      MEMSPAN_TRY_ASSIGN(Frame frame, decode(header), "receiving");
      frame.flags = 0;  // it is not an answer
      if (frame.type == FrameType::kRefused && frame.kind == static_cast<int>(Refusal::kHello))
        return frame;
    }
    if (is_first && accepts_) {
      MEMSPAN_TRY_ASSIGN(const Frame frame, decode(header), "receiving");
      if (frame.type != FrameType::kHello) return Status(Code::kAuth, "it did not greet first");
      Session tried = *this;
      tried.derive({frame.operand, frame.compare});
      if (is_sealed(tried.receives_, header, sequence)) {
        *this = tried;
        return frame;
      }
      return Status(
          Code::kAuth,
          "the caller does not know the secret of this process, or speaks another version of "
          "the protocol");
    }
    return Status(
        Code::kInvalidArgument,
        fmt::format("frame {} is not sealed as the next frame of this connection: forged, "
                    "damaged, repeated or out of its order",
                    sequence));
  }

 private:
  // The keys of the connecting and of the accepting side, and its proof. They stay the same in all
  // versions of the protocol.
  enum class Purpose : std::uint64_t { kConnecting = 1, kAccepting = 2, kProof = 3 };

  static std::uint64_t hash(const SipKey& secret, const Nonce& nonce, Purpose purpose,
                            std::uint64_t more) {
    const std::array<std::uint64_t, 4> input{nonce.low, nonce.high,
                                             static_cast<std::uint64_t>(purpose), more};
    return siphash(secret, std::as_bytes(std::span(input)));
  }

  static SipKey derive_key(const SipKey& secret, const Nonce& nonce, Purpose purpose) {
    return {hash(secret, nonce, purpose, 0), hash(secret, nonce, purpose, 1)};
  }

  static std::uint64_t seal_of(const SipKey& key, std::span<const std::byte, kFrameBytes> header,
                               std::uint32_t sequence) {
    std::array<std::byte, kSealOffset + sizeof sequence> input;
    std::memcpy(input.data(), header.data(), kSealOffset);
    std::memcpy(input.data() + kSealOffset, &sequence, sizeof sequence);
    return siphash(key, input);
  }

  static bool is_sealed(const SipKey& key, std::span<const std::byte, kFrameBytes> header,
                        std::uint32_t sequence) {
    std::uint64_t seal = 0;
    std::memcpy(&seal, header.data() + kSealOffset, sizeof seal);
    return seal == seal_of(key, header, sequence);
  }

  explicit Session(const SipKey& secret) : secret_(secret) {}
  void derive(const Nonce& nonce) {
    nonce_ = nonce;
    const SipKey connecting = derive_key(secret_, nonce, Purpose::kConnecting);
    const SipKey accepting = derive_key(secret_, nonce, Purpose::kAccepting);
    sends_ = accepts_ ? accepting : connecting;
    receives_ = accepts_ ? connecting : accepting;
    has_keys_ = true;
  }

  SipKey secret_;
  Nonce nonce_;
  bool accepts_ = false;
  bool has_keys_ = false;
  SipKey sends_;
  SipKey receives_;
};

}  // namespace memspan::inline transport
