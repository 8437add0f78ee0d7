// SPDX-License-Identifier: Apache-2.0
// What makes a connection of the transport `message` one between two members and nobody else.
//
// An owner tells the members its secret (through the store, which is encrypted). Who connects draws
// a nonce, greets with it, and both derive a key for each direction from secret and nonce; the
// secret itself is never sent. The last eight bytes of every header are its seal: a keyed hash of
// the rest and of the number of the frame. So a frame that is forged, changed, repeated, or out of
// its order ends the connection before anything of it is done. An owner takes each nonce once
// (NonceLog): a greeting that somebody recorded opens nothing.
//
// Payloads are neither sealed nor hidden.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <utility>

#include "core/mutex.h"
#include "core/siphash.h"
#include "core/status.h"
#include "transport/message/protocol.h"

namespace memspan {

// seal() may run beside open() from the second frame on. One thread at a time opens.
class Session {
 public:
  // Who connects, and draws the nonce.
  static Session connecting(const SipKey& secret);
  // Who learns the nonce from the first frame.
  static Session accepting(const SipKey& secret);

  const Nonce& nonce() const { return nonce_; }
  // Of the `sequence`-th frame that this side sends. An accepting side that has opened nothing
  // seals with a key that everybody knows.
  void seal(FrameHeader& header, std::uint32_t sequence) const;
  // The `sequence`-th frame of the other side. kInvalidArgument: it is none, or not the one; kAuth:
  // a greeting of who does not know the secret. Of an owner that takes us for a stranger the first
  // frame may be a refusal of the greeting that nobody has sealed.
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

// The nonces of the greetings that an owner has taken. Who does not know the secret adds none.
// Thread-safe.
class NonceLog {
 public:
  // False when it is there already.
  bool add(const Nonce& nonce) {
    MutexLock lock(mutex_);
    return seen_.insert({nonce.low, nonce.high}).second;
  }

 private:
  Mutex mutex_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan
