// SPDX-License-Identifier: Apache-2.0
#include "pgas/leader_exchange.h"

#include <fmt/format.h>

namespace memspan {
namespace {

// The head of a message; then come `blocks` blocks, each after its BlockHead. Nodes in a row with
// the same block share one.
struct MessageHead {
  std::uint32_t code = 0;  // of a failure; 0 none
  std::int32_t peer = -1;  // that is lost
  std::int32_t how = kUnseenEnd;
  std::uint32_t blocks = 0;
};
struct BlockHead {
  std::uint32_t node = 0;  // the first
  std::uint32_t nodes = 0;
  std::uint64_t bytes = 0;
};

Status bad_message(int peer) {
  return {Code::kInternal, fmt::format("PE {} sent a malformed message of a barrier", peer)};
}

// How long a notice may come before a message that it follows from.
constexpr auto kNoticeLimit = std::chrono::seconds(1);

// One exchange, as this leader sees it. Nodes are counted from its own: 1 is the next one.
class LeaderRound : private LeaderExchange {
 public:
  LeaderRound(const Place& place, const Block& mine, const Take& take)
      : place_(place),
        nodes_(*place.members.nodes()),
        world_(place.members.world()),
        count_(nodes_.count()),
        take_(take),
        blocks_(static_cast<std::size_t>(count_)) {
    blocks_[nodes_.mine()] = mine;
  }

  Status run() {
    if (nodes_.is_direct()) {
      std::vector<int> others;
      for (int distance = 1; distance < count_; ++distance) {
        others.push_back(node_at(distance));
        MEMSPAN_PASS(send(leader_of(node_at(distance)), 1));
      }
      return receive(std::move(others));
    }
    for (int distance = 1; distance < count_; distance *= 2) {
      MEMSPAN_PASS(send(leader_of(node_at(-distance)), std::min(distance, count_ - distance)));
      MEMSPAN_PASS(receive({node_at(distance)}));
    }
    return Status::ok();
  }

 private:
  int node_at(int distance) const { return (nodes_.mine() + distance + count_) % count_; }
  const Block& block_at(int distance) const { return blocks_[node_at(distance)]; }
  int leader_of(int node) const { return place_.members.peer_of(nodes_.leader(node)); }

  // Sends the blocks of this node and of the `number - 1` next ones.
  Status send(int peer, int number) {
    Block message;
    MessageHead head;
    append(message, head);
    for (int i = 0, next = 0; i < number; i = next, ++head.blocks) {
      const Block& block = block_at(i);
      for (next = i + 1; next < number && block_at(next) == block;) ++next;
      append(message, BlockHead{static_cast<std::uint32_t>(node_at(i)),
                                static_cast<std::uint32_t>(next - i), block.size()});
      message.insert(message.end(), block.begin(), block.end());
    }
    std::memcpy(message.data(), &head, sizeof head);
    Status sent = world_.messages().send(peer, place_.key(), message);
    // The peer may have sent its own block before it died; the wait for that reports it.
    return sent.code() == Code::kPeerLost ? Status::ok() : sent;
  }

  Status take_message(int peer, const Buffer& message) {
    std::span<const std::byte> rest(message);
    MessageHead head;
    if (!read(rest, head)) return bad_message(peer);
    if (head.code != 0) {
      const auto code = static_cast<Code>(head.code);
      if (code != Code::kPeerLost || head.peer < 0 || head.peer >= world_.size())
        return {code, "it failed on another node"};
      // The sender may be gone before its notice of the loss is sent, so the message has the PE's
      // end. A process that passes notices on does so with those that are new to its node.
      WaitContext& waiting = world_.waiting();
      if (world_.segment().mark_lost(head.peer, head.how) && waiting.on_loss)
        waiting.on_loss(head.peer, head.how);
      return lost_peer(waiting, head.peer);
    }
    for (std::uint32_t i = 0; i < head.blocks; ++i) {
      BlockHead block;
      if (!read(rest, block) || block.node >= blocks_.size() || block.nodes > blocks_.size() ||
          block.bytes > rest.size())
        return bad_message(peer);
      const auto bytes = rest.first(static_cast<std::size_t>(block.bytes));
      for (std::size_t k = 0; k < block.nodes; ++k) {
        const std::size_t node = (block.node + k) % blocks_.size();
        MEMSPAN_PASS(take_(static_cast<int>(node), bytes));
        if (!nodes_.is_direct()) blocks_[node].assign(bytes.begin(), bytes.end());
      }
      rest = rest.subspan(bytes.size());
    }
    return Status::ok();
  }

  // A gone member of the nodes that have not sent yet, or -1. Among many nodes only the leader of
  // such a node matters, because it reports what its members lack. A member that has departed does
  // not matter either: it may have done its part, and its notice may precede its leader's message.
  // One that left the job may have sent before, over a connection that is slower than the notice of
  // its end: only time decides.
  int missing(const std::vector<int>& awaited) {
    for (const int node : awaited)
      for (const int member : nodes_.members(node)) {
        const bool is_leader = member == nodes_.leader(node);
        if (!nodes_.is_direct() && !is_leader) continue;
        const int peer = place_.members.peer_of(member);
        const PeerSlot& slot = world_.segment().peer(peer);
        if (!world_.waiting().is_gone(peer)) continue;
        const bool is_dead = slot.death.load(std::memory_order_acquire) != 0;
        if (is_dead && !is_leader && slot.wait_status.load(std::memory_order_relaxed) == kDeparted)
          continue;
        if (is_dead) return peer;
        if (!saw_end_) saw_end_ = Clock::now();
        if (Clock::now() - *saw_end_ > kNoticeLimit) return peer;
      }
    return -1;
  }

  // Takes what has come of `from`, and leaves the rest there.
  Status poll(std::vector<int>& from) {
    Status taken;
    std::erase_if(from, [&](int node) {
      if (!taken.is_ok()) return false;
      const int peer = leader_of(node);
      const auto message = world_.messages().poll(peer, place_.key());
      if (message) taken = take_message(peer, *message);
      return message.has_value();
    });
    return taken;
  }

  // Waits for a message of each of these nodes, in the order in which they come.
  Status receive(std::vector<int> from) {
    const ProgressTurn turn(world_.waiting().engine);
    Status taken;
    MEMSPAN_TRY(wait_for(
                    world_.waiting(), WaitsFor::kSync, place_.what, Deadline::never(),
                    [&] {
                      if (taken.is_ok()) taken = poll(from);
                      return from.empty() || !taken.is_ok();
                    },
                    Needs{[&] { return place_.members.first_lost(missing(from)); },
                          [&] { return from.empty() ? -1 : leader_of(from.front()); }}),
                "waiting for another node");
    return taken;
  }

  const Place& place_;
  const TeamNodes& nodes_;
  World& world_;
  const int count_;
  const Take& take_;
  std::vector<Block> blocks_;
  std::optional<Clock::time_point> saw_end_;
};

}  // namespace

Status LeaderExchange::run(const Place& place, const Block& mine, const Take& take) {
  return LeaderRound(place, mine, take).run();
}

void LeaderExchange::tell_failure(const Place& place, Code code, int peer) {
  const TeamMembers& members = place.members;
  MessageHead head{.code = static_cast<std::uint32_t>(code), .peer = peer};
  if (peer >= 0) {
    const PeerSlot& lost = members.world().segment().peer(peer);
    if (lost.is_dead()) head.how = lost.wait_status.load();
  }
  Block message;
  append(message, head);
  // The leaders that wait for this one: all others, or in a dissemination those that it sends to.
  // They also fail, and report that to the leaders that wait for them.
  const TeamNodes& nodes = *members.nodes();
  const int count = nodes.count();
  const bool is_direct = nodes.is_direct();
  for (int distance = 1; distance < count; distance += is_direct ? 1 : distance) {
    const int node = (nodes.mine() - distance + count) % count;
    // A leader that cannot be reached any more does not wait any more.
    (void)members.world().messages().send(members.peer_of(nodes.leader(node)), place.key(),
                                          message);
  }
}

}  // namespace memspan
