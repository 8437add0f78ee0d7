// SPDX-License-Identifier: Apache-2.0
// The bytes of one connection: a non-blocking socket, plain or under TLS.
//
// Every call does what it can at once and says what it waits for; the caller polls. Both ends of a
// store's connections are streams, so this is the only place where bytes leave for the network.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/fd.h"
#include "core/status.h"

namespace memspan {

// What one call came to. A value.
struct StreamStep {
  enum class Next {
    kDone,      // `bytes` were moved, or the handshake is over
    kReadable,  // again when the socket is readable
    kWritable,  // again when it is writable, with the same bytes
    kEnd,       // the other side closed in order
    kFailed,    // `failure` says why; kAuth when trying again cannot help
  };
  Next next = Next::kDone;
  std::size_t bytes = 0;
  Status failure = {};
};

// Whom a peer's certificate names, when it names a member.
struct StreamIdentity {
  std::string job;
  int rank = 0;
  bool operator==(const StreamIdentity&) const = default;
};

// read() and write() may be called from two threads at a time.
class StoreStream {
 public:
  explicit StoreStream(Fd socket) : socket_(std::move(socket)) {}
  virtual ~StoreStream() = default;
  StoreStream(const StoreStream&) = delete;
  StoreStream& operator=(const StoreStream&) = delete;

  // Before anything else, again and again until kDone.
  virtual StreamStep handshake() = 0;
  virtual StreamStep read(char* into, std::size_t room) = 0;
  virtual StreamStep write(std::string_view bytes) = 0;
  // After the handshake.
  // kAuth says what is wrong with a name that is meant to be a member's and is none.
  virtual Result<std::optional<StreamIdentity>> identity() const {
    return std::optional<StreamIdentity>();
  }
  virtual bool has_peer_certificate() const { return false; }
  int socket() const { return socket_.get(); }

 protected:
  // One recv(2) or send(2) without SIGPIPE, as a step.
  static StreamStep receive(int socket, char* into, std::size_t room);
  static StreamStep send(int socket, std::string_view bytes);

 private:
  const Fd socket_;
};

// Not protected: for sockets with two known ends, and for those who ask for it.
std::unique_ptr<StoreStream> make_plain_stream(Fd socket);

}  // namespace memspan
