// SPDX-License-Identifier: Apache-2.0
// The bytes of one connection: a non-blocking socket, plain or under TLS.
//
// Every call does what it can at once and returns what it waits for; the caller polls. Both ends of
// a store's connections are channels, so only channels send bytes to the network.
#pragma once

#include <sys/socket.h>

#include "core/fd.h"

namespace memspan::inline net {

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

// Plain, not protected: for sockets with two known ends, or if the user asks for it. read() and
// write() may be called from two threads at a time.
class ByteChannel : NotCopyable {
 public:
  explicit ByteChannel(Fd socket) : socket_(std::move(socket)) {}
  virtual ~ByteChannel() = default;

  // Call it first, repeatedly until kDone.
  virtual ChannelStep handshake() { return {}; }
  virtual ChannelStep read(char* into, std::size_t room) {
    ssize_t bytes = 0;
    do {
      bytes = ::recv(socket(), into, room, MSG_DONTWAIT);
    } while (bytes < 0 && errno == EINTR);
    if (bytes < 0) return failed("receiving", ChannelStep::Next::kReadable);
    if (bytes == 0) return {.next = ChannelStep::Next::kEnd};
    return {.bytes = static_cast<std::size_t>(bytes)};
  }

  virtual ChannelStep write(std::string_view bytes) {
    ssize_t sent = 0;
    do {
      sent = ::send(socket(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) return failed("sending", ChannelStep::Next::kWritable);
    return {.bytes = static_cast<std::size_t>(sent)};
  }

  // Only after the handshake. kAuth describes a malformed member name.
  virtual Result<std::optional<StreamIdentity>> identity() const {
    return std::optional<StreamIdentity>();
  }
  virtual bool has_peer_certificate() const { return false; }
  int socket() const { return socket_.get(); }

 private:
  static ChannelStep failed(std::string_view what, ChannelStep::Next wait) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {.next = wait};
    const Status why = Status::from_errno(what);
    return {.next = ChannelStep::Next::kFailed, .failure = Status(Code::kStoreLost, why.message())};
  }

  const Fd socket_;
};

inline std::unique_ptr<ByteChannel> make_plain_channel(Fd socket) {
  return std::make_unique<ByteChannel>(std::move(socket));
}

}  // namespace memspan::inline net
