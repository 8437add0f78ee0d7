// SPDX-License-Identifier: Apache-2.0
#include "pgas/collective/steps.h"

#include <fmt/format.h>

namespace memspan::inline pgas {
namespace {

// Recursive doubling sends everything log2(nodes) times, in as few steps; a ring sends it twice, in
// 2 * (nodes - 1) steps.
constexpr std::size_t kMostByDoubling = std::size_t{64} << 10;
// The size of one message, which waits in memory until the receiver asks for it.
constexpr std::size_t kMessageBytes = std::size_t{512} << 10;
static_assert(kMessageBytes <= Messages::kMostBytes);

// Data and steps among one member of each node: `members` by node, this process one of them.
struct NodePeers {
  Team& team;
  const char* what;
  std::vector<int> members;

  int count() const { return static_cast<int>(members.size()); }
  int mine() const { return team.nodes()->mine(); }

  // Puts bytes to `node`, whose wait() for the step ends when they have arrived.
  Status put(int node, int step, std::byte* dest, const void* source, std::size_t bytes) const {
    MEMSPAN_PASS(push(team, team.world().routes(), members[node], dest, source, bytes));
    return send(node, step, nullptr, 0);
  }
  Status wait(int node, int step) const {
    return receive(node, step, [](std::span<std::byte>, std::size_t) {});
  }

  // Bytes by messages, for a receiver that has no place of its own for them.
  Status send(int node, int step, const std::byte* data, std::size_t bytes) const {
    std::size_t done = 0;
    do {
      const std::size_t now = std::min(kMessageBytes, bytes - done);
      MEMSPAN_PASS(team.world().messages().send(peer(node), key(step), {data + done, now}));
      done += now;
    } while (done < bytes);
    return Status::ok();
  }
  // Gives take(piece, offset) the pieces of `bytes` bytes that send() of the other side cut.
  template <typename Take>
  Status receive(int node, int step, Take take, std::size_t bytes = 0) const {
    std::size_t done = 0;
    do {
      const std::size_t now = std::min(kMessageBytes, bytes - done);
      MEMSPAN_TRY_ASSIGN(
          Buffer piece,
          team.world().messages().receive(what, peer(node), key(step), [this] { return lost(); }),
          "waiting for another node");
      if (piece.size() != now)
        return {Code::kInternal, fmt::format("PE {} sent {} bytes, {} were expected", peer(node),
                                             piece.size(), now)};
      take(std::span<std::byte>(piece), done);
      done += now;
    } while (done < bytes);
    return Status::ok();
  }

 private:
  int peer(int node) const { return team.peer_of(members[node]); }
  // The barrier before and the step; no barrier has that number of steps.
  MessageKey key(int step) const {
    return {MessageKind::kData, team.id(),
            team.sequence() << 16 | static_cast<std::uint64_t>(step)};
  }
  // No member leaves before the barrier at the end, so a member that is gone is missing.
  int lost() const {
    for (int member = 0; member < team.size(); ++member)
      if (const int peer = team.peer_of(member); team.world().waiting().is_gone(peer))
        return team.first_lost(peer);
    return -1;
  }
};

std::vector<int> leaders_of(const TeamNodes& nodes) {
  std::vector<int> leaders;
  leaders.reserve(static_cast<std::size_t>(nodes.count()));
  for (int node = 0; node < nodes.count(); ++node) leaders.push_back(nodes.leader(node));
  return leaders;
}

// An all-reduce of `data` among one member of each node.
struct LeaderReduction {
  const NodePeers& peers;
  const ReductionKernel& kernel;
  std::byte* data;
  std::size_t bytes;

  Status run() const { return bytes <= kMostByDoubling ? by_recursive_doubling() : by_ring(); }

 private:
  // The groups of nodes whose sums meet in a step are in order, and the lower one's is the left
  // operand on both sides.
  Status by_recursive_doubling() const {
    const int count = peers.count();
    const int mine = peers.mine();
    int power = 1;
    while (power * 2 <= count) power *= 2;
    // The first 2 * extra nodes pair up, so that a power of two remains.
    const int extra = count - power;
    constexpr int kFold = 0;
    constexpr int kUnfold = 1;
    if (mine < 2 * extra && mine % 2 == 0) {
      MEMSPAN_PASS(peers.send(mine + 1, kFold, data, bytes));
      return peers.receive(
          mine + 1, kUnfold,
          [this](std::span<std::byte> piece, std::size_t offset) {
            copy_bytes(data + offset, piece.data(), piece.size());
          },
          bytes);
    }
    if (mine < 2 * extra) MEMSPAN_PASS(combine_with(mine - 1, kFold));
    const int place = mine < 2 * extra ? mine / 2 : mine - extra;
    int step = kUnfold + 1;
    for (int distance = 1; distance < power; distance *= 2, ++step) {
      const int other = place ^ distance;
      const int node = other < extra ? 2 * other + 1 : other + extra;
      MEMSPAN_PASS(peers.send(node, step, data, bytes));
      MEMSPAN_PASS(combine_with(node, step));
    }
    return mine < 2 * extra ? peers.send(mine - 1, kUnfold, data, bytes) : Status::ok();
  }

  // Each chunk goes round once and gathers all nodes' operands, then once more as the result.
  Status by_ring() const {
    const int count = peers.count();
    const int mine = peers.mine();
    const int next = (mine + 1) % count;
    const int previous = (mine + count - 1) % count;
    for (int i = 0; i < count - 1; ++i) {
      const auto [from, now] = chunk(mine - i);
      MEMSPAN_PASS(peers.send(next, i, data + from, now));
      const auto [to, expected] = chunk(mine - i - 1);
      MEMSPAN_PASS(peers.receive(
          previous, i,
          [&, at = data + to](std::span<std::byte> piece, std::size_t offset) {
            kernel.accumulate(at + offset, piece.data(), piece.size() / kernel.bytes);
          },
          expected));
    }
    // The next node needs nothing of its own copy of these chunks any more.
    for (int i = 0; i < count - 1; ++i) {
      const auto [from, now] = chunk(mine + 1 - i);
      MEMSPAN_PASS(peers.put(next, count + i, data + from, data + from, now));
      MEMSPAN_PASS(peers.wait(previous, count + i));
    }
    return Status::ok();
  }

  // Whole elements. Messages are also cut at whole elements, since their sizes are powers of two.
  Slot chunk(int number) const {
    const auto count = static_cast<std::size_t>(peers.count());
    const std::size_t elements = bytes / kernel.bytes;
    const std::size_t each = (elements + count - 1) / count;
    const auto i = static_cast<std::size_t>((number + 2 * peers.count()) % peers.count());
    const std::size_t first = std::min(elements, i * each);
    return {first * kernel.bytes, (std::min(elements, first + each) - first) * kernel.bytes};
  }

  Status combine_with(int node, int step) const {
    return peers.receive(
        node, step,
        [&](std::span<std::byte> piece, std::size_t offset) {
          const std::size_t count = piece.size() / kernel.bytes;
          if (node > peers.mine()) {
            kernel.accumulate(data + offset, piece.data(), count);
            return;
          }
          kernel.accumulate(piece.data(), data + offset, count);
          copy_bytes(data + offset, piece.data(), piece.size());
        },
        bytes);
  }
};

}  // namespace

Status broadcast_among_nodes(Team& team, const char* what, void* dest, const void* source,
                             std::size_t bytes, int root) {
  const TeamNodes& nodes = *team.nodes();
  const int root_node = nodes.node_of(root);
  // The member of each node that has the data first.
  std::vector<int> holders = leaders_of(nodes);
  holders[root_node] = root;
  const int holder = holders[nodes.mine()];
  if (team.index() == holder) {
    const NodePeers peers{team, what, holders};
    const int count = nodes.count();
    const int place = (nodes.mine() - root_node + count) % count;  // in the tree
    const auto node_at = [&](int its) { return (its + root_node) % count; };
    int distance = 1;
    while (distance < count && (place & distance) == 0) distance *= 2;
    if (place != 0) MEMSPAN_PASS(peers.wait(node_at(place - distance), 0));
    const void* data = team.index() == root ? source : dest;
    for (distance /= 2; distance > 0; distance /= 2) {
      if (place + distance >= count) continue;
      MEMSPAN_PASS(
          peers.put(node_at(place + distance), 0, static_cast<std::byte*>(dest), data, bytes));
    }
    MEMSPAN_PASS(complete_pushes(team.world().routes()));
  }
  MEMSPAN_PASS(team.barrier(what));
  if (team.index() != root && team.index() != holder)
    return pull(team, team.world().routes(), holder, dest, holder == root ? source : dest, bytes);
  return Status::ok();
}

Status gather_among_nodes(Team& team, const char* what, std::byte* dest, const void* source,
                          const std::vector<Slot>& slots) {
  const TeamNodes& nodes = *team.nodes();
  const Slot& mine = slots[team.index()];
  for (int i = 0; i < team.size(); ++i) {
    const int member = member_after(team, i);
    const int node = nodes.node_of(member);
    if (node == nodes.mine() || member == nodes.leader(node))
      MEMSPAN_PASS(
          push(team, team.world().routes(), member, dest + mine.offset, source, mine.bytes));
  }
  MEMSPAN_PASS(complete_pushes(team.world().routes()));
  MEMSPAN_PASS(team.barrier(what));
  if (!team.is_node_leader())
    for (int member = 0; member < team.size(); ++member) {
      const Slot& slot = slots[member];
      if (nodes.node_of(member) != nodes.mine())
        MEMSPAN_PASS(pull(team, team.world().routes(), nodes.my_leader(), dest + slot.offset,
                          dest + slot.offset, slot.bytes));
    }
  return team.barrier(what);
}

Status reduce_among_nodes(const PrefixReduction& all, std::byte* dest, const std::byte* source,
                          std::size_t bytes) {
  Team& team = all.team;
  const TeamNodes& nodes = *team.nodes();
  // Every member of the node combines a slice of all near sources into the leader's dest.
  const std::vector<int>& members = nodes.near();
  PrefixReduction near = all;
  near.members = static_cast<int>(members.size());
  near.listed = members.data();
  const auto place = std::find(members.begin(), members.end(), team.index()) - members.begin();
  MEMSPAN_PASS(reduce_slice(near, static_cast<int>(place), dest, source, bytes));
  MEMSPAN_PASS(complete_pushes(team.world().routes()));
  MEMSPAN_PASS(team.barrier(all.what));
  if (team.is_node_leader()) {
    const NodePeers peers{team, all.what, leaders_of(nodes)};
    const LeaderReduction reduction{peers, all.kernel, dest, bytes};
    MEMSPAN_PASS(reduction.run());
    MEMSPAN_PASS(complete_pushes(team.world().routes()));
  }
  MEMSPAN_PASS(team.barrier(all.what));
  if (!team.is_node_leader())
    MEMSPAN_PASS(pull(team, team.world().routes(), nodes.my_leader(), dest, dest, bytes));
  return team.barrier(all.what);
}

}  // namespace memspan::inline pgas
