// SPDX-License-Identifier: Apache-2.0
// Point-to-point messages between the members of a group, matched by sender and tag. Each pair of
// members has a ring in each direction. On one node it is in the sender's memory:
//
//   | written | read | bytes of messages: header, data, header, data, ... |
//
// Between nodes it is in the receiver's memory. The sender puts bytes there and then their number
// to `written`; the receiver puts how much it has read to `taken` in the sender's memory.
//
// No thread works in the background: data move while both ends are in progress(), as every wait is.
// A message without a receive stays in the ring, unless there may be a receive for one behind it:
// then it is moved to memory of this process (the unexpected messages).
#pragma once

#include <deque>
#include <list>

#include "pgas/group/process_group.h"

namespace memspan::inline pgas {

inline constexpr int kAnybody = -1;

// A message that is sent or received. The mutex of its PointToPoint guards the fields that change.
struct Message {
  enum class Kind { kSend, kReceive };
  Kind kind;
  int member;  // the other end; kAnybody for a receive from any member
  std::int64_t tag;
  std::byte* memory;
  std::size_t bytes;
  bool is_pending = true;
  Status status = {};                // of one that is not pending
  int sender = -1;                   // of one that was received
  std::size_t moved = 0;             // of a send: bytes of header and data
  std::vector<std::byte> kept = {};  // what a forgotten send still has to send
};

// Thread-safe. `group` must outlive it.
class PointToPoint : NotCopyable {
 public:
  explicit PointToPoint(ProcessGroup& group);

  // kInvalidArgument for the member. Owners: the caller and, while it is pending, this.
  Result<std::shared_ptr<Message>> post(Message message) MEMSPAN_EXCLUDES(mutex_);
  // Moves what can be moved, then returns the message's state (kUnavailable: pending; kPeerLost:
  // pending for ever).
  Status test(const std::shared_ptr<Message>& message) MEMSPAN_EXCLUDES(mutex_);
  // kTimeout: pending as before. A failed message's own status.
  Status wait(const std::shared_ptr<Message>& message, Deadline deadline) MEMSPAN_EXCLUDES(mutex_);
  int sender_of(const std::shared_ptr<Message>& message) MEMSPAN_EXCLUDES(mutex_);
  // Its memory is not used any more after it.
  void forget(const std::shared_ptr<Message>& message) MEMSPAN_EXCLUDES(mutex_);

 private:
  struct Ring;
  struct Header {
    std::int64_t tag;
    std::uint64_t bytes;
  };
  // A message that is coming, or has come and has no receive yet.
  struct Arrival {
    Header header = {};
    std::size_t received = 0;
    bool is_unexpected = false;  // came without a receive, so its data go to `memory`
    // Once it has one. Data of one that has none and is not unexpected go nowhere.
    std::shared_ptr<Message> receive = nullptr;
    std::vector<std::byte> memory = {};

    bool is_whole() const { return received == header.bytes; }
  };
  struct Peer {
    std::deque<std::shared_ptr<Message>> sends;
    std::list<Arrival> arrivals;  // the last one may be incomplete

    bool is_receiving() const { return !arrivals.empty() && !arrivals.back().is_whole(); }
  };

  Ring sending_ring(int receiver) const;
  Ring receiving_ring(int sender) const;
  Peer& peer(int member) MEMSPAN_REQUIRES(mutex_) { return peers_[member]; }
  // A gone member without which the message cannot be sent or received, or -1.
  int lost_for(const Message& message) const;
  void progress() MEMSPAN_REQUIRES(mutex_);
  bool push(int member) MEMSPAN_REQUIRES(mutex_);
  bool pull(int member) MEMSPAN_REQUIRES(mutex_);
  bool is_wanted(int member) const MEMSPAN_REQUIRES(mutex_);
  bool begin_arrival(int member, const Ring& ring) MEMSPAN_REQUIRES(mutex_);
  bool match_unexpected(const std::shared_ptr<Message>& message) MEMSPAN_REQUIRES(mutex_);
  static void deliver(const Arrival& arrival, int member);
  static bool check_size(Message& message, const Header& header, int member);
  static void finish(Message& message, int member, Status status = Status::ok());

  ProcessGroup& group_;
  Mutex mutex_;
  std::vector<Peer> peers_ MEMSPAN_GUARDED_BY(mutex_);
  std::list<std::shared_ptr<Message>> receives_ MEMSPAN_GUARDED_BY(mutex_);  // not matched yet
};

}  // namespace memspan::inline pgas
