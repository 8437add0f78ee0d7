// SPDX-License-Identifier: Apache-2.0
// A connection to one peer: the data path of whatever cannot be reached by plain loads and stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.h"
#include "transport/operation_context.h"
#include "transport/region.h"

namespace memspan {

enum class AtomicKind : std::uint8_t { kFetch, kSet, kSwap, kCompareSwap, kAdd, kAnd, kOr, kXor };

// A value. `width` is 4 or 8 bytes; operands stand in the low bytes.
struct AtomicOp {
  AtomicKind kind;
  std::uint8_t width;
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;  // kCompareSwap: expected value
};

// Applies `op` to `word`, atomically among all that do the same, and gives the value before.
std::uint64_t apply_atomic(void* word, const AtomicOp& op);

enum class SignalOp : int { kSet = 0, kAdd = 1 };

// A place in a peer's memory. `region` must outlive the call that gets it.
struct RemotePlace {
  const RemoteRegion& region;
  std::uint64_t offset = 0;
};

enum class MoveDirection : std::uint8_t { kPut, kGet };

// What a message is about, in words of its sender and its receiver.
struct MessageTag {
  std::uint64_t kind = 0;
  std::uint64_t id = 0;
  std::uint64_t sequence = 0;
  bool operator==(const MessageTag&) const = default;
};

// One piece of a vector.
struct MovePiece {
  std::byte* local = nullptr;  // only read by kPut
  const RemoteRegion* region = nullptr;
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
};

// Thread-safe. A place that is not wholly inside its region is kInvalidArgument and touches
// nothing; a region that was retracted is kStale. The owner checks as well. Where the owner is the
// first to find out, a call that waits for an answer fails, and for a put the next quiet() of its
// context. kPeerLost: the peer or the way to it is gone; the message names the peer.
//
// Every call that waits ends: with the answer, with the loss of the peer, at the context's limit,
// or when the thread is interrupted (core/interrupt.h). Memory given to a call that ended belongs
// to the caller again.
class Link {
 public:
  virtual ~Link() = default;

  // Makes `region` ready to be used, where a transport has to do something for that. To be called
  // once for each region, before any other use of it.
  virtual Status attach(const RemoteRegion& region) = 0;
  // Where the byte can be loaded and stored directly, or null.
  virtual std::byte* direct(const RemotePlace& place) = 0;

  // Returns when `from` may be changed.
  virtual Status put(OperationContext& context, const RemotePlace& to, const void* from,
                     std::size_t bytes) = 0;
  // `from` stays as it is until quiet() of the context.
  virtual Status put_nbi(OperationContext& context, const RemotePlace& to, const void* from,
                         std::size_t bytes) = 0;
  // Returns when the bytes are here.
  virtual Status get(OperationContext& context, void* to, const RemotePlace& from,
                     std::size_t bytes) = 0;
  // They are here after quiet() of the context.
  virtual Status get_nbi(OperationContext& context, void* to, const RemotePlace& from,
                         std::size_t bytes) = 0;
  // The data, then the signal: who sees the signal sees the data. `bytes` may be 0. A refused put
  // is not signaled.
  virtual Status put_signal(OperationContext& context, const RemotePlace& to, const void* from,
                            std::size_t bytes, const RemotePlace& signal, std::uint64_t value,
                            SignalOp op) = 0;
  // All pieces, in no promised order; as put() or get() of each.
  virtual Status move(OperationContext& context, MoveDirection direction,
                      std::span<const MovePiece> pieces) = 0;
  // `fetched` may be null: then it may return before it is applied, as a put. The offset is a
  // multiple of op.width.
  virtual Status atomic(OperationContext& context, const AtomicOp& op, const RemotePlace& at,
                        std::uint64_t* fetched) = 0;

  // Puts and atomics of the context before it are applied before those after it, at this peer.
  virtual Status fence(OperationContext& context) = 0;
  // The two halves of quiet(), so that several peers can be asked at once.
  virtual std::uint64_t start_quiet(OperationContext& context) = 0;
  virtual Status finish_quiet(OperationContext& context, std::uint64_t ticket) = 0;
  // Puts and atomics of the context before it are applied, and its gets are here. Gives the first
  // failure since the last quiet().
  Status quiet(OperationContext& context) { return finish_quiet(context, start_quiet(context)); }

  // A message for the peer's handler, after all puts of this thread before it. Returns when
  // `bytes` may be changed; may be called by a handler. kNotSupported where there are no messages.
  virtual Status send(const MessageTag& tag, std::span<const std::byte> bytes);

 protected:
  // A context outlives no link that it used.
  static void use(OperationContext& context, Link& link) { context.use(link); }
};

}  // namespace memspan
