// SPDX-License-Identifier: Apache-2.0
#include "pgas/node_barrier.h"

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <span>

#include "device/host/copy.h"
#include "pgas/call_signature.h"

namespace memspan::inline pgas {
namespace {

// The lines of a node's members on their way to other leaders.
using NodeBlock = std::vector<std::byte>;
using TakeBlock = std::function<Status(int node, std::span<const std::byte>)>;

template <typename T>
void append_value(NodeBlock& to, const T& value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  to.insert(to.end(), from, from + sizeof value);
}

// False if there are not as many bytes.
template <typename T>
bool read_value(std::span<const std::byte>& from, T& value) {
  if (from.size() < sizeof value) return false;
  std::memcpy(&value, from.data(), sizeof value);
  from = from.subspan(sizeof value);
  return true;
}

MessageKey key_of_barrier(const TeamMembers& members, std::uint64_t sequence) {
  return {MessageKind::kBarrier, members.id(), sequence};
}

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

// An exchange of blocks among the leaders, as this one sees it: directly among few nodes, by
// dissemination among many. Nodes are counted from its own: 1 is the next one.
class LeaderExchange {
 public:
  LeaderExchange(const TeamMembers& members, std::uint64_t sequence, const char* what,
                 const NodeBlock& mine, const TakeBlock& take)
      : members_(members),
        key_(key_of_barrier(members, sequence)),
        what_(what),
        take_(take),
        blocks_(static_cast<std::size_t>(count_)) {
    blocks_[nodes_.mine()] = mine;
  }

  // Gives take(node, block) the block of every other node. kPeerLost: a member is gone whose node
  // has not sent its block. If another leader reported a failure (fail_among_nodes), that one.
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
  const NodeBlock& block_at(int distance) const { return blocks_[node_at(distance)]; }
  int leader_of(int node) const { return members_.peer_of(nodes_.leader(node)); }

  // Sends the blocks of this node and of the `number - 1` next ones.
  Status send(int peer, int number) {
    NodeBlock message;
    MessageHead head;
    append_value(message, head);
    for (int i = 0, next = 0; i < number; i = next, ++head.blocks) {
      const NodeBlock& block = block_at(i);
      for (next = i + 1; next < number && block_at(next) == block;) ++next;
      append_value(message, BlockHead{static_cast<std::uint32_t>(node_at(i)),
                                      static_cast<std::uint32_t>(next - i), block.size()});
      message.insert(message.end(), block.begin(), block.end());
    }
    std::memcpy(message.data(), &head, sizeof head);
    Status sent = world_.messages().send(peer, key_, message);
    // The peer may have sent its own block before it died; the wait for that reports it.
    return sent.code() == Code::kPeerLost ? Status::ok() : sent;
  }

  Status take_message(int peer, const Buffer& message) {
    std::span<const std::byte> rest(message);
    MessageHead head;
    if (!read_value(rest, head)) return bad_message(peer);
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
      if (!read_value(rest, block) || block.node >= blocks_.size() ||
          block.nodes > blocks_.size() || block.bytes > rest.size())
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
        const int peer = members_.peer_of(member);
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
      const auto message = world_.messages().poll(peer, key_);
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
                    world_.waiting(), WaitsFor::kSync, what_, Deadline::never(),
                    [&] {
                      if (taken.is_ok()) taken = poll(from);
                      return from.empty() || !taken.is_ok();
                    },
                    Needs{[&] { return members_.first_lost(missing(from)); },
                          [&] { return from.empty() ? -1 : leader_of(from.front()); }}),
                "waiting for another node");
    return taken;
  }

  const TeamMembers& members_;
  const TeamNodes& nodes_ = *members_.nodes();
  World& world_ = members_.world();
  const int count_ = nodes_.count();
  const MessageKey key_;
  const char* const what_;
  const TakeBlock& take_;
  std::vector<NodeBlock> blocks_;
  std::optional<Clock::time_point> saw_end_;
};

// The head of a line in a block: its words and how much of the eager buffer follows. Members in a
// row with the same words and no buffer share one, so a barrier without words is one for each node.
struct LineHead {
  std::uint64_t words[kPayloadWords];
  std::uint32_t eager_bytes;
  std::uint32_t members;
};

// One barrier, as this member takes part in it.
struct NodeBarrier {
  const TeamArea& area;
  const char* const what;
  const std::uint64_t sequence;
  const TeamMembers& team = area.members();
  const TeamNodes& nodes = *team.nodes();
  World& world = team.world();

  Status run() {
    if (!team.is_node_leader()) return follow_leader();
    Status status = lead();
    if (status.is_ok()) return Status::ok();
    // Members with a deadline, and members that learn of an exit, find out by themselves.
    if (status.code() != Code::kTimeout && status.code() != Code::kUnavailable) {
      int lost = area.missing_from_flags(sequence);
      for (int member = 0; lost < 0 && member < team.size(); ++member)
        if (!team.is_alive(member)) lost = team.peer_of(member);
      lost = team.first_lost(lost);
      area.header().failure.store(std::uint64_t{1} << 63 |
                                      static_cast<std::uint64_t>(status.code()) << 32 |
                                      static_cast<std::uint32_t>(lost + 1),
                                  std::memory_order_release);
      fail_among_nodes(team, sequence, status.code(), lost);
    }
    world.segment().ring_all();
    return status;
  }

 private:
  Status follow_leader() {
    const int leader = team.peer_of(team.node_leader());
    world.route(leader).notify_sync();
    const SyncHeader& header = area.header();
    const auto is_over = [&] {
      return header.released.load(std::memory_order_acquire) >= sequence;
    };
    MEMSPAN_PASS(wait_for(
        world.waiting(), WaitsFor::kSync, what, Deadline::never(),
        [&] { return is_over() || header.failure.load(std::memory_order_acquire) != 0; },
        Needs{[&] {
                int missing = area.missing_from_flags(sequence);
                if (missing < 0 && world.waiting().is_gone(leader)) missing = leader;
                return team.first_lost(missing);
              },
              // The leader, once all of the node have come: it waits for other nodes.
              [&] {
                for (const int member : nodes.near())
                  if (!area.has_entered(member, sequence)) return team.peer_of(member);
                return leader;
              }}));
    if (is_over()) return Status::ok();
    const std::uint64_t failure = header.failure.load(std::memory_order_acquire);
    const int peer = static_cast<int>(failure & 0xffff'ffff) - 1;
    if (peer >= 0) return lost_peer(world.waiting(), peer);
    return {static_cast<Code>(failure >> 32 & 0x7fff'ffff),
            fmt::format("it failed on PE {}, the first of this node's members", leader)};
  }

  Status lead() {
    for (const int member : nodes.near())
      MEMSPAN_PASS(area.await_flag(what, member, sequence, [&] {
        int missing = area.missing_from_flags(sequence);
        // A member of another node that is gone may have entered, but then the others of its node
        // have not got past this barrier: it fails for all.
        for (int other = 0; missing < 0 && other < team.size(); ++other)
          if (world.waiting().is_gone(team.peer_of(other)) && !team.is_near(other))
            missing = team.peer_of(other);
        return team.first_lost(missing);
      }));
    const auto take = [&](int node, std::span<const std::byte> block) {
      return take_lines(node, block);
    };
    MEMSPAN_PASS(LeaderExchange(team, sequence, what, lines_of_node(), take).run());
    area.release(sequence);
    return Status::ok();
  }

  // Depends on the member's signature: a broadcast's members read only the root's buffer. Elements
  // that fit the words are in no buffer, but count all the same.
  std::size_t eager_bytes_used(int member) const {
    const std::uint64_t signature =
        area.line(member, sequence).words[kSignatureWord].load(std::memory_order_relaxed);
    const auto [kind, bytes, root] = CollectiveSignature::decode(signature);
    if (!CollectiveSignature::is_of_barrier(signature, sequence) || bytes > area.eager_bytes())
      return 0;
    const bool is_read =
        kind == CollectiveKind::kBroadcast
            ? root == member
            : kind != CollectiveKind::kAlltoall && kind != CollectiveKind::kAlltoalls;
    return is_read ? bytes : 0;
  }

  NodeBlock lines_of_node() const {
    NodeBlock block;
    LineHead last{};
    std::size_t at_last = 0;
    for (const int member : nodes.near()) {
      const SyncLine& line = area.line(member, sequence);
      LineHead head{.words = {}, .eager_bytes = 0, .members = 1};
      for (int i = 0; i < kPayloadWords; ++i)
        head.words[i] = line.words[i].load(std::memory_order_relaxed);
      head.eager_bytes = static_cast<std::uint32_t>(eager_bytes_used(member));
      if (last.members != 0 && last.eager_bytes == 0 && head.eager_bytes == 0 &&
          std::memcmp(last.words, head.words, sizeof head.words) == 0) {
        ++last.members;
        std::memcpy(block.data() + at_last, &last, sizeof last);
        continue;
      }
      at_last = block.size();
      last = head;
      append_value(block, head);
      const std::byte* const eager = area.eager_buffer(member, sequence);
      block.insert(block.end(), eager, eager + head.eager_bytes);
    }
    return block;
  }

  Status take_lines(int node, std::span<const std::byte> block) {
    const auto malformed = [] { return Status(Code::kInternal, "a malformed block of a barrier"); };
    LineHead head{};
    for (const int member : nodes.members(node)) {
      if (head.members == 0) {
        if (!read_value(block, head) || head.members == 0 ||
            head.eager_bytes > std::min(block.size(), area.eager_bytes()) ||
            (head.eager_bytes != 0 && head.members != 1))
          return malformed();
      }
      --head.members;
      SyncLine& line = area.line(member, sequence);
      for (int i = 0; i < kPayloadWords; ++i)
        line.words[i].store(head.words[i], std::memory_order_relaxed);
      if (head.eager_bytes != 0)
        std::memcpy(area.eager_buffer(member, sequence), block.data(), head.eager_bytes);
      block = block.subspan(head.eager_bytes);
      line.sequence.store(sequence, std::memory_order_release);
    }
    return head.members == 0 && block.empty() ? Status::ok() : malformed();
  }
};

}  // namespace

Status barrier_among_nodes(const TeamArea& area, const char* what, std::uint64_t sequence) {
  return NodeBarrier{area, what, sequence}.run();
}

void fail_among_nodes(const TeamMembers& members, std::uint64_t sequence, Code code, int peer) {
  if (members.nodes() == nullptr) return;
  MessageHead head{.code = static_cast<std::uint32_t>(code), .peer = peer};
  if (peer >= 0) {
    const PeerSlot& lost = members.world().segment().peer(peer);
    if (lost.is_dead()) head.how = lost.wait_status.load();
  }
  NodeBlock message;
  append_value(message, head);
  // The leaders that wait for this one: all others, or in a dissemination those that it sends to.
  // They also fail, and report that to the leaders that wait for them.
  const TeamNodes& nodes = *members.nodes();
  const int count = nodes.count();
  const bool is_direct = nodes.is_direct();
  for (int distance = 1; distance < count; distance += is_direct ? 1 : distance) {
    const int node = (nodes.mine() - distance + count) % count;
    // A leader that cannot be reached any more does not wait any more.
    (void)members.world().messages().send(members.peer_of(nodes.leader(node)),
                                          key_of_barrier(members, sequence), message);
  }
}

}  // namespace memspan::inline pgas
