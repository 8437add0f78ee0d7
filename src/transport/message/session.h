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

#include "core/siphash.h"
#include "transport/message/protocol.h"

namespace memspan {

// From the second frame on, seal() may run beside open(). One thread at a time calls open().
class Session {
 public:
  // The side that draws the nonce.
  static Session connecting(const SipKey& secret);
  // The side that learns the nonce from the first frame.
  static Session accepting(const SipKey& secret);

  const Nonce& nonce() const { return nonce_; }
  // Only a process that knows `secret` can make it for this connection. The connecting side proves
  // its identity by its own secret as an owner.
  std::uint64_t proof(const SipKey& secret) const;
  // Seals the `sequence`-th frame that this side sends. An accepting side that has opened nothing
  // uses the key 0.
  void seal(FrameHeader& header, std::uint32_t sequence) const;
  // Opens the `sequence`-th frame of the other side. kInvalidArgument: it is invalid or out of
  // order; kAuth: a greeting by a side that does not know the secret. An owner that rejects this
  // side's greeting may answer with a refusal under the key 0.
  Result<Frame> open(std::span<const std::byte, kFrameBytes> header, std::uint32_t sequence);

 private:
  explicit Session(const SipKey& secret) : secret_(secret) {}
  void derive(const Nonce& nonce);

  SipKey secret_;
  Nonce nonce_;
  bool accepts_ = false;
  bool has_keys_ = false;
  SipKey sends_;
  SipKey receives_;
};

}  // namespace memspan
