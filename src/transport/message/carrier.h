// SPDX-License-Identifier: Apache-2.0
// What moves the bytes of the transport `message`: connections that keep order. A new carrier
// implements these three classes; the protocol above knows nothing else of it.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/status.h"
#include "transport/message/native_access.h"

namespace memspan {

// How long a call may sleep at most that was told to wait: then its caller looks around.
inline constexpr auto kStreamWait = std::chrono::milliseconds(20);

enum class Waiting : bool { kNo, kShortly };  // not at all, or up to kStreamWait

// Of a peer about which nothing is known.
inline constexpr std::size_t kFarWindow = std::size_t{1} << 20;

// One connection. One thread at a time receives and one sends; cut() may come from any.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // To poll: readable when receive() gives bytes or the end, writable when send() takes some.
  virtual int descriptor() const = 0;
  // Bytes to ask the other end for at a time: enough that it always has some to send.
  virtual std::size_t window() const { return kFarWindow; }
  // Both ends still agree on something before send() takes bytes: then it is to be tried again when
  // the descriptor is readable. Any thread asks.
  virtual bool is_opening() const { return false; }
  // Whether receive() may give more that came already, which the descriptor does not show. Who
  // receives asks.
  virtual bool has_buffered() const { return false; }
  // The number of bytes, 0 when there are none (in time), or -1 when the connection has ended.
  virtual ssize_t receive(std::span<const iovec> to, Waiting waiting) = 0;
  virtual ssize_t send(std::span<const iovec> from, Waiting waiting) = 0;
  // Ends the connection for both sides; who waits in it returns.
  virtual void cut() = 0;
};

// One thread at a time.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual int descriptor() const = 0;  // readable when accept() has one
  // What connect() of the same carrier takes in another process.
  virtual std::string address() const = 0;
  // Null when nobody is there.
  virtual std::unique_ptr<ByteStream> accept() = 0;
  // Whether accept() also moves the bytes of all streams: then who looks after streams calls it,
  // too.
  virtual bool moves_streams() const { return false; }
};

// Thread-safe.
class Carrier {
 public:
  virtual ~Carrier() = default;
  virtual std::string_view name() const = 0;
  virtual Result<std::unique_ptr<Listener>> listen() = 0;
  // kUnreachable, or kTimeout at the deadline.
  virtual Result<std::unique_ptr<ByteStream>> connect(const std::string& address,
                                                      const Deadline& deadline) = 0;
  // Null where peers' memory is reached by frames alone. Lives as long as the carrier.
  virtual NativeAccess* native() { return nullptr; }
};

}  // namespace memspan
