// SPDX-License-Identifier: Apache-2.0
// A connection to one peer: the data path to its regions, memory that plain loads and stores cannot
// reach. A region is named by number and generation, never by an address. The generation changes
// each time a number is reused, so an old handle is recognized as stale.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"

namespace memspan::inline transport {

class Link;

enum class MemoryKind : std::uint8_t { kHost, kDevice };

// A value. In an existing region neither number is 0.
struct RegionId {
  std::uint32_t number = 0;
  std::uint32_t generation = 0;
  bool operator==(const RegionId&) const = default;
};

// Describes a region to a peer. A value, sent at join or on demand.
struct RemoteRegion {
  RegionId id;
  std::uint64_t bytes = 0;
  MemoryKind kind = MemoryKind::kHost;
  std::string transport_key;  // only the transport that made it reads it

  // Whether an access is completely inside.
  bool contains(std::uint64_t offset, std::uint64_t length) const {
    return offset <= bytes && length <= bytes - offset;
  }
  std::string encode() const;
  // kInvalidArgument for text that encode() does not write.
  static Result<RemoteRegion> decode(std::string_view text);
  bool operator==(const RemoteRegion&) const = default;
};

// Memory that this process exposes. `number` 0: the next free number.
struct LocalRegion {
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;
  MemoryKind kind = MemoryKind::kHost;
  std::uint32_t number = 0;
  // The memory stays in place until the job ends. So a network may register it and reach it without
  // this process (docs/design/0014-native-rma.md).
  bool lasts = false;
};

// Tracks outstanding operations: it remembers the links used since its last quiet, so quiet asks
// only those. It costs nothing if all accesses were direct.
//
// Thread-safe: a context that several threads share completes the operations of all of them.
class OperationContext : NotCopyable {
 public:
  // Identifies it in messages to a peer; unique in this process.
  std::uint64_t id() const { return id_; }
  // How long one call that begins from now on may wait; Duration::max(): no limit.
  Duration limit() const { return limit_.load(std::memory_order_relaxed); }
  void set_limit(Duration limit) { limit_.store(limit, std::memory_order_relaxed); }
  Deadline deadline() const {
    const Duration most = limit();
    return most == Duration::max() ? Deadline::never() : Deadline::after(most);
  }

  // `link` has begun an operation of this context. It must outlive the context.
  void use(Link& link);
  // Link::quiet() of all used links, in parallel. Returns the first failure.
  Status quiet();

 private:
  struct Use {
    Link* link;
    std::uint64_t count;  // calls so far
    bool operator==(const Use&) const = default;
  };

  static inline std::atomic<std::uint64_t> last_id_{0};
  const std::uint64_t id_ = last_id_.fetch_add(1, std::memory_order_relaxed) + 1;
  std::atomic<Duration> limit_{Duration::max()};
  Mutex mutex_;
  std::vector<Use> used_ MEMSPAN_GUARDED_BY(mutex_);
};

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
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a null pointer in it
  auto operator<=>(const MessageTag&) const = default;
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

// Thread-safe. The peer applies the puts and atomics of one context in the order of the calls.
//
// A call returns kInvalidArgument and touches nothing if a place is not completely
// inside its region. It returns kStale for a retracted region. The owner also checks. If only the
// owner finds an error, the call that waits for the answer fails; for a put the next quiet() of its
// context fails. kPeerLost: the peer or the path to it is lost; the message names the peer.
//
// Every call that waits ends with the answer, the loss of the peer, the context's limit, or an
// interrupt of the thread (core/interrupt.h). Then its memory belongs to the caller again.
class Link {
 public:
  virtual ~Link() = default;

  // Moves all pieces, in unspecified order. A put returns when the caller may change the local
  // bytes, a get when they have arrived.
  virtual Status move(OperationContext& context, MoveDirection direction,
                      std::span<const MovePiece> pieces) = 0;
  // move() of one piece.
  Status put(OperationContext& context, const RemotePlace& to, const void* from,
             std::size_t bytes) {
    auto* const local = static_cast<std::byte*>(const_cast<void*>(from));
    const MovePiece piece{local, &to.region, to.offset, bytes};
    return move(context, MoveDirection::kPut, {&piece, 1});
  }
  Status get(OperationContext& context, void* to, const RemotePlace& from, std::size_t bytes) {
    const MovePiece piece{static_cast<std::byte*>(to), &from.region, from.offset, bytes};
    return move(context, MoveDirection::kGet, {&piece, 1});
  }
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
  // If `fetched` is null, it may return before the operation is applied, like a put. The offset is
  // a multiple of op.width.
  virtual Status atomic(OperationContext& context, const AtomicOp& op, const RemotePlace& at,
                        std::uint64_t* fetched) = 0;

  // The two halves of quiet(), with which a caller asks several peers at once. A link that never
  // calls OperationContext::use() has nothing to wait for.
  virtual std::uint64_t start_quiet(OperationContext&) { return 0; }
  virtual Status finish_quiet(OperationContext&, std::uint64_t) { return Status::ok(); }
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
};

}  // namespace memspan::inline transport
