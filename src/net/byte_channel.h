// SPDX-License-Identifier: Apache-2.0
// The bytes of one connection: a non-blocking socket, plain or under TLS.
//
// Every call does what it can at once and returns what it waits for; the caller polls. Both ends of
// a store's connections are channels, so only channels send bytes to the network.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/fd.h"
#include "core/status.h"

namespace memspan {

// Result of one call. A value.
struct ChannelStep {
  enum class Next {
    kDone,      // `bytes` were moved, or the handshake is over
    kReadable,  // call again when the socket is readable
    kWritable,  // call again when it is writable, with the same bytes
    kEnd,       // the other side closed cleanly
    kFailed,    // `failure` is the cause; kAuth: a retry cannot help
  };
  Next next = Next::kDone;
  std::size_t bytes = 0;
  Status failure = {};
};

// The member that a peer's certificate names.
struct StreamIdentity {
  std::string job;
  int rank = 0;
  bool operator==(const StreamIdentity&) const = default;
};

// read() and write() may be called from two threads at a time.
class ByteChannel {
 public:
  explicit ByteChannel(Fd socket) : socket_(std::move(socket)) {}
  virtual ~ByteChannel() = default;
  ByteChannel(const ByteChannel&) = delete;
  ByteChannel& operator=(const ByteChannel&) = delete;

  // Call it first, repeatedly until kDone.
  virtual ChannelStep handshake() = 0;
  virtual ChannelStep read(char* into, std::size_t room) = 0;
  virtual ChannelStep write(std::string_view bytes) = 0;
  // Only after the handshake. kAuth describes a malformed member name.
  virtual Result<std::optional<StreamIdentity>> identity() const {
    return std::optional<StreamIdentity>();
  }
  virtual bool has_peer_certificate() const { return false; }
  int socket() const { return socket_.get(); }

 protected:
  // One recv(2) or send(2) without SIGPIPE, as a step.
  static ChannelStep receive(int socket, char* into, std::size_t room);
  static ChannelStep send(int socket, std::string_view bytes);

 private:
  const Fd socket_;
};

// Not protected: for sockets with two known ends, or if the user asks for it.
std::unique_ptr<ByteChannel> make_plain_channel(Fd socket);

}  // namespace memspan
