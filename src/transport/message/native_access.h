// SPDX-License-Identifier: Apache-2.0
// One-sided access to memory of peers, which a carrier may offer beside its streams. The network
// moves the bytes without the owner's processor. It keeps no order: the caller must have the
// answers of all operations that come first (docs/design/0014-native-rma.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/status.h"

namespace memspan {

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
  // Returns when the bytes are in the peer's memory.
  virtual Status put(std::uint64_t offset, const void* from, std::size_t bytes,
                     const GiveUp& give_up) = 0;
  // Returns when the bytes are in `to`.
  virtual Status get(void* to, std::uint64_t offset, std::size_t bytes, const GiveUp& give_up) = 0;
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

}  // namespace memspan
