// SPDX-License-Identifier: Apache-2.0
#include "pgas/group/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace memspan::pgas {

// A view of a channel at its place in this process. Positions count bytes and only grow.
struct Messages::Ring {
  struct Ends {
    alignas(kFalseSharingRange) std::atomic<std::uint64_t> written;
    alignas(kFalseSharingRange) std::atomic<std::uint64_t> read;
  };
  static constexpr std::size_t kBytes = kChannelBytes - sizeof(Ends);
  // So that a header never wraps.
  static constexpr std::size_t kUnit = sizeof(Header);
  static_assert(kBytes % kUnit == 0);
  static std::size_t padded(std::size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

  Ends* ends;
  std::byte* data;

  // Acquire pairs with the other end's release: bytes were written before they are read, and read
  // before they are written again.
  std::size_t readable() const {
    return ends->written.load(std::memory_order_acquire) -
           ends->read.load(std::memory_order_relaxed);
  }
  std::size_t writable() const {
    return kBytes - (ends->written.load(std::memory_order_relaxed) -
                     ends->read.load(std::memory_order_acquire));
  }
  void write(const void* from, std::size_t bytes, std::size_t advance) const {
    const std::uint64_t position = ends->written.load(std::memory_order_relaxed);
    const std::size_t at = position % kBytes;
    const std::size_t first = std::min(bytes, kBytes - at);
    if (first != 0) std::memcpy(data + at, from, first);
    if (bytes > first)
      std::memcpy(data, static_cast<const std::byte*>(from) + first, bytes - first);
    ends->written.store(position + advance, std::memory_order_release);
  }
  // `to` may be null: nowhere.
  void read(void* to, std::size_t bytes, std::size_t advance) const {
    const std::uint64_t position = ends->read.load(std::memory_order_relaxed);
    const std::size_t at = position % kBytes;
    const std::size_t first = std::min(bytes, kBytes - at);
    if (to != nullptr) {
      if (first != 0) std::memcpy(to, data + at, first);
      if (bytes > first) std::memcpy(static_cast<std::byte*>(to) + first, data, bytes - first);
    }
    ends->read.store(position + advance, std::memory_order_release);
  }
};

Messages::Messages(ProcessGroup& group)
    : group_(group), peers_(static_cast<std::size_t>(group.size())) {}

Messages::Ring Messages::ring(int sender, int receiver) const {
  std::byte* const place = group_.channel(sender, receiver);
  return {reinterpret_cast<Ring::Ends*>(place), place + sizeof(Ring::Ends)};
}

Result<std::shared_ptr<Message>> Messages::post(Message message) {
  const int least = message.kind == Message::Kind::kReceive ? kAnybody : 0;
  if (message.member < least || message.member >= group_.size())
    return Status(Code::kInvalidArgument, fmt::format("the member is {}, allowed are {} to {}",
                                                      message.member, least, group_.size() - 1));
  auto made = std::make_shared<Message>(std::move(message));  // owners: post() has them
  MutexLock lock(mutex_);
  if (made->kind == Message::Kind::kSend)
    peer(made->member).sends.push_back(made);
  else if (!take_arrival(made))
    receives_.push_back(made);
  progress();
  return made;
}

Status Messages::test(const std::shared_ptr<Message>& message) {
  // Before the look at what has come: who is gone sends nothing more.
  const int lost = lost_for(*message);
  MutexLock lock(mutex_);
  if (message->state == Message::State::kPending) progress();
  if (message->state != Message::State::kPending) return message->status;
  if (lost >= 0) return lost_peer(group_.world().board(), lost);
  return {Code::kUnavailable, "pending"};
}

Status Messages::wait(const std::shared_ptr<Message>& message, Deadline deadline) {
  const bool is_send = message->kind == Message::Kind::kSend;
  MEMSPAN_PASS(wait_for(
      group_.world().waiting(), WaitsFor::kMeeting, is_send ? "send" : "receive", deadline,
      [&] { return test(message).code() != Code::kUnavailable; },
      [&] { return lost_for(*message); }));
  return test(message);
}

int Messages::lost_for(const Message& message) const {
  const Board& board = group_.world().board();
  if (board.header().deaths.load(std::memory_order_acquire) == 0) return -1;
  if (group_.has_left()) return group_.rank();
  if (message.member == kAnybody) return lost_for_anybody();
  const bool is_gone = board.peer(message.member).death.load(std::memory_order_acquire) != 0;
  return is_gone ? message.member : -1;
}

// A message from anybody may be a dead one's. Who left has sent what it had to send: the others may
// send yet, while there are others.
int Messages::lost_for_anybody() const {
  const Board& board = group_.world().board();
  int departed = -1;
  bool has_others = group_.size() == 1;
  for (int member = 0; member < group_.size(); ++member) {
    if (member == group_.rank()) continue;
    const BoardPeer& other = board.peer(member);
    if (other.death.load(std::memory_order_acquire) == 0)
      has_others = true;
    else if (other.state.load(std::memory_order_acquire) == PeerState::kLost)
      return member;
    else
      departed = member;
  }
  return has_others ? -1 : departed;
}

int Messages::sender_of(const std::shared_ptr<Message>& message) {
  MutexLock lock(mutex_);
  return message->sender;
}

void Messages::forget(const std::shared_ptr<Message>& message) {
  MutexLock lock(mutex_);
  if (message->state != Message::State::kPending) return;
  if (message->kind == Message::Kind::kReceive) {
    receives_.remove(message);
    message->memory = nullptr;  // one that is coming goes nowhere
  } else if (message->moved == 0) {
    auto& sends = peer(message->member).sends;
    sends.erase(std::find(sends.begin(), sends.end(), message));
  } else {
    message->kept.assign(message->memory, message->memory + message->bytes);
    message->memory = message->kept.data();
  }
}

void Messages::progress() {
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (int member = 0; member < group_.size(); ++member) {
      if (!peer(member).sends.empty()) has_moved |= push(member);
      if (is_wanted(member)) has_moved |= pull(member);
    }
  }
}

// What this process has for `member`, as much as fits.
bool Messages::push(int member) {
  const Ring to = ring(group_.rank(), member);
  auto& sends = peer(member).sends;
  bool has_moved = false;
  while (!sends.empty()) {
    Message& message = *sends.front();
    std::size_t room = to.writable();
    if (message.moved == 0) {
      if (room < sizeof(Header)) break;
      const Header header{message.tag, message.bytes};
      to.write(&header, sizeof header, sizeof header);
      message.moved = sizeof header;
      room -= sizeof header;
      has_moved = true;
    }
    const std::size_t done = message.moved - sizeof(Header);
    const std::size_t left = message.bytes - done;
    // All but the last part in whole units, so that headers stay where they do not wrap.
    const std::size_t now = Ring::padded(left) <= room ? left : room / Ring::kUnit * Ring::kUnit;
    if (now != 0) {
      to.write(message.memory + done, now, Ring::padded(now));
      message.moved += now;
      has_moved = true;
    }
    if (now < left) break;
    message.state = Message::State::kDone;
    sends.pop_front();
  }
  if (has_moved) group_.world().route(member).notify_meeting();
  return has_moved;
}

// Somebody waits for what is coming from there, or for what may be behind it.
bool Messages::is_wanted(int member) const {
  if (peers_[static_cast<std::size_t>(member)].incoming.is_under_way) return true;
  return std::any_of(receives_.begin(), receives_.end(), [&](const auto& receive) {
    return receive->member == member || receive->member == kAnybody;
  });
}

bool Messages::pull(int member) {
  const Ring from = ring(member, group_.rank());
  Peer& sender = peer(member);
  Incoming& incoming = sender.incoming;
  bool has_moved = false;
  while (incoming.is_under_way || (is_wanted(member) && begin_incoming(member, from))) {
    const std::size_t left = incoming.header.bytes - incoming.received;
    const std::size_t there = from.readable();
    const std::size_t now = std::min(left, there);
    if (now != 0) {
      std::byte* to = incoming.arrival != nullptr ? incoming.arrival->memory.data()
                      : incoming.taker != nullptr ? incoming.taker->memory
                                                  : nullptr;
      from.read(to == nullptr ? nullptr : to + incoming.received, now, Ring::padded(now));
      incoming.received += now;
    }
    has_moved |= now != 0 || left == 0;
    if (now < left) break;
    end_incoming(sender, member);
  }
  if (has_moved) group_.world().route(member).notify_meeting();
  return has_moved;
}

bool Messages::begin_incoming(int member, const Ring& ring) {
  if (ring.readable() < sizeof(Header)) return false;
  Peer& sender = peer(member);
  Header header{};
  ring.read(&header, sizeof header, sizeof header);
  sender.incoming = {true, header, 0, find_receive(member, header.tag), nullptr};
  if (sender.incoming.taker != nullptr) {
    if (!check_size(*sender.incoming.taker, header, member)) sender.incoming.taker = nullptr;
  } else {
    sender.arrivals.push_back({header, std::vector<std::byte>(header.bytes)});
    sender.incoming.arrival = &sender.arrivals.back();
  }
  return true;
}

void Messages::end_incoming(Peer& from, int member) {
  Incoming done = std::move(from.incoming);
  from.incoming = {};
  if (done.taker != nullptr) finish(*done.taker, member);
  if (done.arrival == nullptr) return;
  done.arrival->is_whole = true;
  if (done.arrival->taker == nullptr) return;
  deliver(*done.arrival, member);
  from.arrivals.remove_if([&](const Arrival& arrival) { return &arrival == done.arrival; });
}

// The first that asks for it, in the order of asking, which is then not asked again.
std::shared_ptr<Message> Messages::find_receive(int member, std::int64_t tag) {
  const auto found = std::find_if(
      receives_.begin(), receives_.end(), [&](const std::shared_ptr<Message>& receive) {
        return (receive->member == member || receive->member == kAnybody) && receive->tag == tag;
      });
  if (found == receives_.end()) return nullptr;
  auto message = *found;
  receives_.erase(found);
  return message;
}

// From what has come without being asked for; false when nothing fits.
bool Messages::take_arrival(const std::shared_ptr<Message>& message) {
  for (int member = 0; member < group_.size(); ++member) {
    if (message->member != kAnybody && message->member != member) continue;
    auto& arrivals = peer(member).arrivals;
    const auto found = std::find_if(arrivals.begin(), arrivals.end(), [&](const Arrival& arrival) {
      return arrival.header.tag == message->tag && arrival.taker == nullptr;
    });
    if (found == arrivals.end()) continue;
    found->taker = message;
    if (found->is_whole) {
      deliver(*found, member);
      arrivals.erase(found);
    }
    return true;
  }
  return false;
}

void Messages::deliver(Arrival& arrival, int member) {
  Message& message = *arrival.taker;
  if (!check_size(message, arrival.header, member)) return;
  if (message.memory != nullptr && !arrival.memory.empty())
    std::memcpy(message.memory, arrival.memory.data(), arrival.memory.size());
  finish(message, member);
}

bool Messages::check_size(Message& message, const Header& header, int member) {
  if (message.bytes == header.bytes) return true;
  message.sender = member;
  message.status = Status(Code::kInvalidArgument,
                          fmt::format("member {} sent {} bytes with tag {}, and {} were asked for",
                                      member, header.bytes, header.tag, message.bytes));
  message.state = Message::State::kFailed;
  return false;
}

void Messages::finish(Message& message, int member) {
  message.sender = member;
  message.state = Message::State::kDone;
}

}  // namespace memspan::pgas
