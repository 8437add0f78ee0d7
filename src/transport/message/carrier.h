// SPDX-License-Identifier: Apache-2.0
// Carriers move the bytes of the transport `message` over connections that keep order. A new
// carrier implements these four classes; the protocol above knows nothing else of it.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <functional>
#include <span>

#include "core/clock.h"
#include "core/status.h"
#include "transport/link.h"

namespace memspan::inline transport {

// The window of an unknown peer.
inline constexpr std::size_t kFarWindow = std::size_t{1} << 20;

// One connection. One thread at a time. No call waits.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // For poll(): readable when receive() returns bytes or the end, writable when send() takes some.
  // -1: the carrier has one descriptor for all (Listener), and calls on_change().
  virtual int descriptor() const = 0;
  // For a stream without a descriptor: called, in calls of the carrier, when receive() or send()
  // may do more than the last time.
  virtual void on_change(const std::function<void()>&) {}
  // Bytes to request from the peer at a time: enough to keep it sending.
  virtual std::size_t window() const { return kFarWindow; }
  // Whether the ends still negotiate, so send() takes no bytes. Retry when the descriptor is
  // readable.
  virtual bool is_opening() const { return false; }
  // Whether receive() may return more bytes that the descriptor does not show.
  virtual bool has_buffered() const { return false; }
  // Returns the number of bytes, 0 if it can move none now, or -1 after the connection's end. Bytes
  // that send() did not take come first in its next call, which is at least as long.
  virtual ssize_t receive(std::span<const iovec> to) = 0;
  virtual ssize_t send(std::span<const iovec> from) = 0;
  // Ends the connection for both sides.
  virtual void cut() = 0;
};

// One thread at a time.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual int descriptor() const = 0;  // readable when accept() has one
  // The argument for connect() of this carrier in another process.
  virtual std::string address() const = 0;
  // Null if no connection waits.
  virtual std::unique_ptr<ByteStream> accept() = 0;
  // Whether accept() also moves the bytes of all streams, which have no descriptors. Then threads
  // that serve streams also call it, and prepare_sleep() before they wait for the descriptor.
  virtual bool moves_streams() const { return false; }
  // False: there is work now, so accept() is to be called instead.
  virtual bool prepare_sleep() { return true; }
};

// A connection that begins. One thread at a time; no call waits. Destruction gives it up.
class Opening {
 public:
  virtual ~Opening() = default;
  // Call step() at first, when the descriptor is readable or writable, and at next(). Without a
  // descriptor as in ByteStream.
  virtual int descriptor() const = 0;
  virtual void on_change(const std::function<void()>&) {}
  virtual Clock::time_point next() const { return Clock::time_point::max(); }
  // Null: it is not open yet. kUnreachable: it never will be.
  virtual Result<std::unique_ptr<ByteStream>> step() = 0;
};

// ---- One-sided access to memory of peers, which a carrier may offer beside its streams. The
// network moves the bytes without the owner's processor. It keeps no order: the caller must have
// the answers of all operations that come first (docs/design/0014-native-rma.md).

// RemoteRegion::transport_key of a region that an owner gives keys for.
inline constexpr std::string_view kNativeRegion = "native";

// A waiting call polls it: ok, or why the call ends early.
using GiveUp = std::function<Status()>;

// A piece of a peer's memory. Thread-safe; must not outlive its carrier.
//
// kUnavailable: the network has failed, and the caller may use another way. A failure of `give_up`:
// the piece is now unusable. In both cases some bytes may have been moved, and nothing touches the
// caller's memory after the call.
class NativeMemory {
 public:
  virtual ~NativeMemory() = default;
  // Returns when the bytes are in the peer's memory, or in `local`.
  virtual Status move(MoveDirection direction, std::byte* local, std::uint64_t offset,
                      std::size_t bytes, const GiveUp& give_up) = 0;
  // Whether a get copies memory that is mapped in this process, without the network: then it is
  // faster than a message at any size.
  virtual bool is_mapped() const { return false; }
  // The transport's name, for messages: "rc_mlx5".
  virtual std::string_view lane() const = 0;
};

// Thread-safe.
class NativeAccess {
 public:
  virtual ~NativeAccess() = default;

  // Registers memory of this process at the first call, and returns the key for open() of a peer. A
  // process with the key can read and write the memory: only peers of the job get it. Does not wait
  // for a peer. kNotSupported if no network has one-sided access.
  virtual Result<std::string> key(std::byte* base, std::size_t bytes) = 0;
  // Ends the registrations of memory in that range.
  virtual void retract(std::byte* base, std::size_t bytes) = 0;
  // kNotSupported if the network cannot reach that memory without the peer's processor.
  virtual Result<std::unique_ptr<NativeMemory>> open(std::string_view key) = 0;
  // Registrations made so far.
  virtual std::uint64_t registrations() const = 0;
};

// One thread at a time, together with all that it has made; except name() and native().
class Carrier {
 public:
  virtual ~Carrier() = default;
  virtual std::string_view name() const = 0;
  virtual Result<std::unique_ptr<Listener>> listen() = 0;
  // Does not wait. kInvalidArgument or kAuth: this carrier does not connect there.
  virtual Result<std::unique_ptr<Opening>> connect(const std::string& address) = 0;
  // Null if only frames reach peers' memory. Lives as long as the carrier.
  virtual NativeAccess* native() { return nullptr; }
};

}  // namespace memspan::inline transport
