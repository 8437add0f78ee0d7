// SPDX-License-Identifier: Apache-2.0
// A connection to one peer: the data path to memory that plain loads and stores cannot reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.h"
#include "transport/operation_context.h"
#include "transport/region.h"

namespace memspan {

enum class AtomicKind : std::uint8_t { kFetch, kSet, kSwap, kCompareSwap, kAdd, kAnd, kOr, kXor };

// A value. `width` is 4 or 8 bytes; operands are in the low bytes.
struct AtomicOp {
  AtomicKind kind;
  std::uint8_t width;
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;  // kCompareSwap: expected value
};

// Applies `op` to `word`, atomically with other calls, and returns the previous value.
std::uint64_t apply_atomic(void* word, const AtomicOp& op);
// The same; `fetched` may be null. kInvalidArgument unless it is an aligned word of 4 or 8 bytes.
Status checked_atomic(void* word, const AtomicOp& op, std::uint64_t* fetched);

enum class SignalOp : int { kSet = 0, kAdd = 1 };

// A place in a peer's memory. `region` must outlive the call that uses it.
struct RemotePlace {
  const RemoteRegion& region;
  std::uint64_t offset = 0;
};

enum class MoveDirection : std::uint8_t { kPut, kGet };

// Identifies a message. The sender and the receiver define the meaning.
struct MessageTag {
  std::uint64_t kind = 0;
  std::uint64_t id = 0;
  std::uint64_t sequence = 0;
  bool operator==(const MessageTag&) const = default;
};

// One piece of a vector.
struct MovePiece {
  std::byte* local = nullptr;  // kPut only reads it
  const RemoteRegion* region = nullptr;
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
};

// kLeft: the peer has said goodbye. kLost: the connection ended without one. Both are final.
enum class LinkState : std::uint8_t { kOpen, kLost, kLeft };

// Thread-safe. A call returns kInvalidArgument and touches nothing if a place is not completely
// inside its region. It returns kStale for a retracted region. The owner also checks. If only the
// owner finds an error, the call that waits for the answer fails; for a put the next quiet() of its
// context fails. kPeerLost: the peer or the path to it is lost; the message names the peer.
//
// Every call that waits ends with the answer, the loss of the peer, the context's limit, or an
// interrupt of the thread (core/interrupt.h). Then its memory belongs to the caller again.
class Link {
 public:
  virtual ~Link() = default;

  // Prepares `region` for use, if the transport requires that. Call it once for each region, before
  // any other use.
  virtual Status attach(const RemoteRegion& region) = 0;

  // Returns when the caller may change `from`.
  virtual Status put(OperationContext& context, const RemotePlace& to, const void* from,
                     std::size_t bytes) = 0;
  // The caller must not change `from` before quiet() of the context.
  virtual Status put_nbi(OperationContext& context, const RemotePlace& to, const void* from,
                         std::size_t bytes) {
    return put(context, to, from, bytes);
  }
  // Returns when the bytes are in `to`.
  virtual Status get(OperationContext& context, void* to, const RemotePlace& from,
                     std::size_t bytes) = 0;
  // The bytes are in `to` after quiet() of the context.
  virtual Status get_nbi(OperationContext& context, void* to, const RemotePlace& from,
                         std::size_t bytes) {
    return get(context, to, from, bytes);
  }
  // Writes the data, then the signal: a thread that sees the signal sees the data. `bytes` may be
  // 0. A refused put is not signaled.
  virtual Status put_signal(OperationContext& context, const RemotePlace& to, const void* from,
                            std::size_t bytes, const RemotePlace& signal, std::uint64_t value,
                            SignalOp op) = 0;
  // Like put() or get() of each piece, in unspecified order.
  virtual Status move(OperationContext& context, MoveDirection direction,
                      std::span<const MovePiece> pieces) {
    for (const MovePiece& piece : pieces) {
      const RemotePlace place{*piece.region, piece.offset};
      MEMSPAN_PASS(direction == MoveDirection::kPut
                       ? put(context, place, piece.local, piece.bytes)
                       : get(context, piece.local, place, piece.bytes));
    }
    return Status::ok();
  }
  // If `fetched` is null, it may return before the operation is applied, like a put. The offset is
  // a multiple of op.width.
  virtual Status atomic(OperationContext& context, const AtomicOp& op, const RemotePlace& at,
                        std::uint64_t* fetched) = 0;

  // At this peer, earlier puts and atomics of the context are applied before later ones.
  virtual Status fence(OperationContext& context) = 0;
  // The two halves of quiet(), with which a caller asks several peers at once.
  virtual std::uint64_t start_quiet(OperationContext& context) = 0;
  virtual Status finish_quiet(OperationContext& context, std::uint64_t ticket) = 0;
  // Waits until the context's puts and atomics are applied and its gets complete. Returns the first
  // failure since the last quiet().
  Status quiet(OperationContext& context) { return finish_quiet(context, start_quiet(context)); }

  // Sends a message to the peer's handler, after all earlier puts of this thread. Returns when
  // `bytes` may be changed. kNotSupported: no messages.
  virtual Status send(const MessageTag&, std::span<const std::byte>, const Deadline&) {
    return {Code::kNotSupported, "this transport carries no messages"};
  }
  // Control: it may overtake what was sent before, except other posts, and never waits, not even
  // for the connection. Any thread may call it, handlers also. Bytes that the peer does not take
  // are queued up to a limit, and are lost with the peer.
  virtual Status post(const MessageTag&, std::span<const std::byte>) {
    return {Code::kNotSupported, "this transport carries no messages"};
  }
  // Handlers of the transport report an end later.
  virtual LinkState state() const { return LinkState::kOpen; }

 protected:
  // A link must outlive the contexts that used it.
  static void use(OperationContext& context, Link& link) { context.use(link); }
};

}  // namespace memspan
