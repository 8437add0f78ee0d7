// SPDX-License-Identifier: Apache-2.0
// One-sided access to memory of peers, which a carrier may offer beside its streams: the network
// moves the bytes, and the owner's processor has no part in it. Who uses it decides nothing of
// order: it has to have the answer of whatever is to come before.
// (docs/design/0014-native-rma.md)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/status.h"

namespace memspan {

// Asked now and then by who waits: ok, or why the call ends without what it waits for.
using GiveUp = std::function<Status()>;

// A piece of a peer's memory. Thread-safe; must not outlive its carrier.
//
// kUnavailable: the network has failed, and the caller may do the same in another way. What
// `give_up` said: the piece is of no use any more. In both cases the bytes may have been moved in
// part, and nothing touches the caller's memory when the call has ended.
class NativeMemory {
 public:
  virtual ~NativeMemory() = default;
  // Returns when the bytes are in the peer's memory.
  virtual Status put(std::uint64_t offset, const void* from, std::size_t bytes,
                     const GiveUp& give_up) = 0;
  // Returns when the bytes are here.
  virtual Status get(void* to, std::uint64_t offset, std::size_t bytes, const GiveUp& give_up) = 0;
  // Whether a get is a copy of memory that is mapped here, without a network's turn: then it is
  // quicker than a message at any size.
  virtual bool is_mapped() const { return false; }
  // What carries it, for messages: "rc_mlx5".
  virtual std::string_view lane() const = 0;
};

// Thread-safe.
class NativeAccess {
 public:
  virtual ~NativeAccess() = default;

  // Registers memory of this process, at the first call for it, and gives what open() of a peer
  // takes. Who has the key can read and write the memory: it goes to peers of the job alone. Does
  // not wait for a peer. kNotSupported where no network has one-sided access.
  virtual Result<std::string> key(std::byte* base, std::size_t bytes) = 0;
  // Ends the registrations of memory in that range.
  virtual void retract(std::byte* base, std::size_t bytes) = 0;
  // kNotSupported where the network cannot reach that memory without the peer's processor.
  virtual Result<std::unique_ptr<NativeMemory>> open(std::string_view key) = 0;
  // Registrations made so far.
  virtual std::uint64_t registrations() const = 0;
};

}  // namespace memspan
