// SPDX-License-Identifier: Apache-2.0
// Messages between PEs of different nodes, in place of the shared memory within a node. A message
// uses the sender's link to one PE, in order with its puts there. The receiver keeps it in a table
// of unexpected messages until a call asks for it by its key.
//
//   send(pe, key, bytes) -- link --> deliver(from, ...) --> table --> receive(from, key)
//                                        |  rings this process's doorbell
//                                        +-> the handler of notices, which are never in the table
#pragma once

#include <map>

#include "core/bytes.h"
#include "core/mutex.h"
#include "node/wait.h"
#include "transport/link.h"

namespace memspan::inline world {

// MessageTag::kind.
struct MessageKind {
  static constexpr std::uint64_t kNotice = 1;   // World's own: deaths, ends, requests to end
  static constexpr std::uint64_t kBarrier = 2;  // lines of a team's barrier
  static constexpr std::uint64_t kData = 3;     // a collective's data
};

// Names a message of one sender. `id` is the owner: equal on all members of a team, never reused.
// Several with the same key are received in the order of sending.
using MessageKey = MessageTag;

// Thread-safe.
class Messages : NotCopyable {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;

  // Sending to a PE (Link::post() of a notice, else Link::send()), and handling arrived frames
  // without waiting. Both are thread-safe.
  struct Carriage {
    std::function<Status(int peer, const MessageKey& key, std::span<const std::byte> bytes,
                         const Deadline& deadline)>
        send;
    std::function<void()> progress;
  };
  // Handles a notice on the thread that took the frame. It must not wait.
  using NoticeHandler = std::function<void(int from, std::uint64_t id, std::uint64_t sequence,
                                           std::span<const std::byte> bytes)>;

  // `waiting` must outlive it.
  explicit Messages(WaitContext& waiting) : waiting_(waiting) {}
  // Call both before any message arrives.
  void set_carriage(Carriage carriage) { carriage_ = std::move(carriage); }
  void set_notice_handler(NoticeHandler handler) { on_notice_ = std::move(handler); }

  // Sends to a PE of another node. Returns when `bytes` may be changed, for a notice at once;
  // kInvalidArgument beyond kMostBytes, kPeerLost if the link is cut, kTimeout after the limit of
  // waits.
  Status send(int peer, const MessageKey& key, std::span<const std::byte> bytes);

  // Waits for a message of `from` as wait_for() does. kPeerLost if lost() returns a PE; `what`
  // names the call.
  template <typename Lost>
  Result<Buffer> receive(const char* what, int from, const MessageKey& key, Lost lost) {
    const ProgressTurn turn(waiting_.engine);
    std::optional<Buffer> taken;
    MEMSPAN_PASS(wait_for(
        waiting_, WaitsFor::kSync, what, Deadline::never(),
        [&] {
          if (!taken) taken = poll(from, key);
          return taken.has_value();
        },
        Needs{lost, [from] { return from; }}));
    return std::move(*taken);
  }
  // A message that has already arrived; handles frames first.
  std::optional<Buffer> poll(int from, const MessageKey& key);
  // Drops messages that no call will ask for: those of a destroyed team.
  void discard(std::uint64_t kind, std::uint64_t id) {
    MutexLock lock(mutex_);
    std::erase_if(table_, [&](const auto& entry) {
      return entry.first.second.kind == kind && entry.first.second.id == id;
    });
  }

  // Called by the transport, on any thread, with what send() of `from` made. kInvalidArgument if it
  // is not a message.
  Status deliver(int from, const MessageKey& key, Buffer bytes);

 private:
  WaitContext& waiting_;
  Carriage carriage_;
  NoticeHandler on_notice_;
  Mutex mutex_;
  // By the sender and the key; those of one key in the order of arrival.
  std::multimap<std::pair<int, MessageKey>, Buffer> table_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::inline world
