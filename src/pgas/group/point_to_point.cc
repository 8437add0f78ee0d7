// SPDX-License-Identifier: Apache-2.0
#include "pgas/group/point_to_point.h"

#include <fmt/format.h>

#include "pgas/group/call.h"

namespace memspan::inline pgas {
namespace {

// The part of a member's heap for messages between it and another one.
struct Channel {
  // For the ring in here: to a near member, or from a far one.
  alignas(kFalseSharingRange) std::atomic<std::uint64_t> written;
  alignas(kFalseSharingRange) std::atomic<std::uint64_t> read;
  // For the ring in the memory of the member, when it is far.
  alignas(kFalseSharingRange) std::atomic<std::uint64_t> sent;
  alignas(kFalseSharingRange) std::atomic<std::uint64_t> taken;
  static constexpr std::size_t kRingBytes = kChannelBytes - 4 * kFalseSharingRange;
  std::byte ring[kRingBytes];
};
static_assert(sizeof(Channel) == kChannelBytes);

Channel& channel_of(const ProcessGroup& group, int owner, int member) {
  return *reinterpret_cast<Channel*>(group.channel(owner, member));
}

}  // namespace

// One end of a ring. Positions count bytes and only grow.
struct PointToPoint::Ring {
  static constexpr std::size_t kBytes = Channel::kRingBytes;
  // So that a header never wraps.
  static constexpr std::size_t kUnit = sizeof(Header);
  static_assert(kBytes % kUnit == 0);
  static std::size_t padded(std::size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

  std::atomic<std::uint64_t>* written;
  std::atomic<std::uint64_t>* read_to;
  std::byte* data;
  // The other end is on another node, where `data` and `far_position` are symmetric addresses. Puts
  // of one link are applied in order. A peer that cannot be reached is gone: waits report it.
  const RouteTable* routes = nullptr;
  const Route* far = nullptr;
  std::atomic<std::uint64_t>* far_position = nullptr;

  // Acquire pairs with the other end's release: bytes were written before they are read, and read
  // before they are written again.
  std::size_t readable() const {
    return written->load(std::memory_order_acquire) - read_to->load(std::memory_order_relaxed);
  }
  std::size_t writable() const {
    return kBytes -
           (written->load(std::memory_order_relaxed) - read_to->load(std::memory_order_acquire));
  }
  void write(const void* from, std::size_t bytes, std::size_t advance) const {
    const std::uint64_t position = written->load(std::memory_order_relaxed);
    const std::size_t at = position % kBytes;
    const std::size_t first = std::min(bytes, kBytes - at);
    const auto* const rest = static_cast<const std::byte*>(from) + first;
    if (far != nullptr) {
      static_cast<void>(put_by_link(*routes, *far, data, rest, bytes - first));
      put_position(position + advance, data + at, from, first);
    } else {
      std::memcpy(data + at, from, first);
      if (bytes > first) std::memcpy(data, rest, bytes - first);
    }
    written->store(position + advance, std::memory_order_release);
  }
  // `to` may be null: nowhere.
  void read(void* to, std::size_t bytes, std::size_t advance) const {
    const std::uint64_t position = read_to->load(std::memory_order_relaxed);
    const std::size_t at = position % kBytes;
    const std::size_t first = std::min(bytes, kBytes - at);
    if (to != nullptr) {
      if (first != 0) std::memcpy(to, data + at, first);
      if (bytes > first) std::memcpy(static_cast<std::byte*>(to) + first, data, bytes - first);
    }
    read_to->store(position + advance, std::memory_order_release);
    if (far != nullptr) put_position(position + advance, nullptr, nullptr, 0);
  }

 private:
  void put_position(std::uint64_t position, std::byte* to, const void* from,
                    std::size_t bytes) const {
    auto* const word = reinterpret_cast<std::uint64_t*>(far_position);
    static_cast<void>(
        put_signal_by_link(*routes, {*far, *far}, to, from, bytes, word, position, SignalOp::kSet));
  }
};

PointToPoint::PointToPoint(ProcessGroup& group)
    : group_(group), peers_(static_cast<std::size_t>(group.size())) {}

// At a far receiver the ring is in its channel to this process.
PointToPoint::Ring PointToPoint::sending_ring(int receiver) const {
  Channel& own = channel_of(group_, group_.rank(), receiver);
  if (group_.is_near(receiver)) return {&own.written, &own.read, own.ring};
  Channel& there = channel_of(group_, group_.rank(), group_.rank());
  const World& world = group_.world();
  group_.note_messages_to(receiver);
  return {&own.sent,     &own.taken, there.ring, &world.routes(), &world.route(receiver),
          &there.written};
}

PointToPoint::Ring PointToPoint::receiving_ring(int sender) const {
  if (group_.is_near(sender)) {
    Channel& its = channel_of(group_, sender, group_.rank());
    return {&its.written, &its.read, its.ring};
  }
  Channel& own = channel_of(group_, group_.rank(), sender);
  Channel& there = channel_of(group_, group_.rank(), group_.rank());
  const World& world = group_.world();
  return {&own.written, &own.read, own.ring, &world.routes(), &world.route(sender), &there.taken};
}

Result<std::shared_ptr<Message>> PointToPoint::post(Message message) {
  const int least = message.kind == Message::Kind::kReceive ? kAnybody : 0;
  MEMSPAN_PASS(check_member(group_, "member", message.member, least));
  auto made = std::make_shared<Message>(std::move(message));  // owners: post() has them
  MutexLock lock(mutex_);
  if (made->kind == Message::Kind::kSend)
    peer(made->member).sends.push_back(made);
  else if (!match_unexpected(made))
    receives_.push_back(made);
  progress();
  return made;
}

Status PointToPoint::test(const std::shared_ptr<Message>& message) {
  // Before the look at what has come: a member that is gone sends nothing more.
  const int lost = lost_for(*message);
  MutexLock lock(mutex_);
  if (message->is_pending) progress();
  if (!message->is_pending) return message->status;
  if (lost >= 0) return lost_peer(group_.world().waiting(), lost);
  return {Code::kUnavailable, "pending"};
}

Status PointToPoint::wait(const std::shared_ptr<Message>& message, Deadline deadline) {
  const bool is_send = message->kind == Message::Kind::kSend;
  const Status over = wait_for(
      group_.world().waiting(), WaitsFor::kSync, is_send ? "send" : "receive", deadline,
      [&] { return test(message).code() != Code::kUnavailable; },
      Needs{[&] { return lost_for(*message); },
            [&] { return message->member == kAnybody ? -1 : message->member; }});
  if (over.code() == Code::kTimeout && message->member != kAnybody)
    return over.annotate(fmt::format("waiting for PE {}", message->member));
  MEMSPAN_PASS(over);
  return test(message);
}

int PointToPoint::lost_for(const Message& message) const {
  const NodeSegment& segment = group_.world().segment();
  if (segment.header().deaths.load(std::memory_order_acquire) == 0) return -1;
  if (group_.has_left()) return group_.rank();
  if (message.member != kAnybody)
    return segment.peer(message.member).is_dead() ? message.member : -1;
  // The message may be from a member that died. One that left has sent all its messages: the others
  // may still send, while there are others.
  int departed = -1;
  bool has_others = group_.size() == 1;
  for (int member = 0; member < group_.size(); ++member) {
    if (member == group_.rank()) continue;
    const PeerSlot& other = segment.peer(member);
    if (!other.is_dead())
      has_others = true;
    else if (other.state.load(std::memory_order_acquire) == PeerState::kLost)
      return member;
    else
      departed = member;
  }
  return has_others ? -1 : departed;
}

int PointToPoint::sender_of(const std::shared_ptr<Message>& message) {
  MutexLock lock(mutex_);
  return message->sender;
}

void PointToPoint::forget(const std::shared_ptr<Message>& message) {
  MutexLock lock(mutex_);
  if (!message->is_pending) return;
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

void PointToPoint::progress() {
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (int member = 0; member < group_.size(); ++member) {
      if (!peer(member).sends.empty()) has_moved |= push(member);
      if (is_wanted(member)) has_moved |= pull(member);
    }
  }
}

// Writes this process's data for `member`, as much as fits into the ring.
bool PointToPoint::push(int member) {
  const Ring to = sending_ring(member);
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
    message.is_pending = false;
    sends.pop_front();
  }
  if (has_moved) group_.world().route(member).notify_sync();
  return has_moved;
}

// Whether a receive waits for what is coming from `member`, or for what may be behind it.
bool PointToPoint::is_wanted(int member) const {
  if (peers_[member].is_receiving()) return true;
  return std::any_of(receives_.begin(), receives_.end(), [&](const auto& receive) {
    return receive->member == member || receive->member == kAnybody;
  });
}

bool PointToPoint::pull(int member) {
  const Ring from = receiving_ring(member);
  Peer& sender = peer(member);
  bool has_moved = false;
  while (sender.is_receiving() || (is_wanted(member) && begin_arrival(member, from))) {
    Arrival& arrival = sender.arrivals.back();
    const std::size_t left = arrival.header.bytes - arrival.received;
    const std::size_t now = std::min(left, from.readable());
    if (now != 0) {
      std::byte* const to = arrival.is_unexpected        ? arrival.memory.data()
                            : arrival.receive != nullptr ? arrival.receive->memory
                                                         : nullptr;
      from.read(to == nullptr ? nullptr : to + arrival.received, now, Ring::padded(now));
      arrival.received += now;
    }
    has_moved |= now != 0 || left == 0;
    if (now < left) break;
    if (arrival.receive != nullptr)
      deliver(arrival, member);
    else if (arrival.is_unexpected)
      continue;
    sender.arrivals.pop_back();
  }
  if (has_moved) group_.world().route(member).notify_sync();
  return has_moved;
}

bool PointToPoint::begin_arrival(int member, const Ring& ring) {
  if (ring.readable() < sizeof(Header)) return false;
  Arrival& arrival = peer(member).arrivals.emplace_back();
  Header& header = arrival.header;
  ring.read(&header, sizeof header, sizeof header);
  // The first receive that matches, in the order of posting.
  const auto found = std::find_if(receives_.begin(), receives_.end(), [&](const auto& receive) {
    return (receive->member == member || receive->member == kAnybody) && receive->tag == header.tag;
  });
  if (found == receives_.end()) {
    arrival.memory.resize(header.bytes);
    arrival.is_unexpected = true;
  } else {
    if (check_size(**found, header, member)) arrival.receive = *found;
    receives_.erase(found);
  }
  return true;
}

// Takes a matching unexpected message; false if none matches.
bool PointToPoint::match_unexpected(const std::shared_ptr<Message>& message) {
  for (int member = 0; member < group_.size(); ++member) {
    if (message->member != kAnybody && message->member != member) continue;
    auto& arrivals = peer(member).arrivals;
    const auto found = std::find_if(arrivals.begin(), arrivals.end(), [&](const Arrival& other) {
      return other.is_unexpected && other.header.tag == message->tag && other.receive == nullptr;
    });
    if (found == arrivals.end()) continue;
    found->receive = message;
    if (found->is_whole()) {
      deliver(*found, member);
      arrivals.erase(found);
    }
    return true;
  }
  return false;
}

void PointToPoint::deliver(const Arrival& arrival, int member) {
  Message& message = *arrival.receive;
  if (!check_size(message, arrival.header, member)) return;
  if (message.memory != nullptr && !arrival.memory.empty())
    std::memcpy(message.memory, arrival.memory.data(), arrival.memory.size());
  finish(message, member);
}

bool PointToPoint::check_size(Message& message, const Header& header, int member) {
  if (message.bytes == header.bytes) return true;
  finish(message, member,
         {Code::kInvalidArgument,
          fmt::format("member {} sent {} bytes with tag {}, and {} were asked for", member,
                      header.bytes, header.tag, message.bytes)});
  return false;
}

void PointToPoint::finish(Message& message, int member, Status status) {
  message.sender = member;
  message.status = std::move(status);
  message.is_pending = false;
}

}  // namespace memspan::inline pgas
