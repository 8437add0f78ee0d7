// SPDX-License-Identifier: Apache-2.0
// Notices between the nodes of a job about its PEs. They update the slots of a node segment that
// stand for PEs of other nodes. A node gets a notice through one of its living PEs. That PE passes
// it on over the overlay network (NodeOverlay) and then writes it into its node's segment, which
// wakes waiting threads.
//
// Losses, departures and requests to exit are flooded, because they must arrive even if nodes die.
// The end of a PE uses a tree, because every PE sends one. If a node dies that may have had ends to
// pass on, all send theirs again (kRepeatEnds).
#pragma once

#include "world/messages.h"
#include "world/node_map.h"

namespace memspan::inline world {

// The overlay network of a job's nodes: the connections that a node keeps, and how a notice reaches
// all. Nodes form a ring. A node's neighbors are 1, 2, 4, ... places before it; a barrier by
// dissemination sends to the same ones. So a job of n nodes has n * log2(n) connections instead of
// n * n, and about 2 * log2(n) others watch each node.
//
//   flood: to all neighbors, which pass on what is new to them. Survives the death of nodes on the
//          way, and sends n * log2(n) messages.
//   tree:  each receiver gets a span of the ring to pass it on to. Sends n messages. Those that
//          a dead node had to pass on are lost.

// `Lives` is a function of a node: whether it can be reached.
template <typename Lives>
class NodeOverlay {
 public:
  // 0 <= own < count.
  NodeOverlay(int count, int own, Lives lives) : count_(count), own_(own), lives_(lives) {}

  // The node that many places before this one.
  int before(int distance) const { return (own_ - distance % count_ + count_) % count_; }

  // Ascending in distance; the next living node beyond it replaces a dead one.
  std::vector<int> neighbors() const {
    std::vector<int> found;
    int reached = 0;
    for (int distance = 1; distance < count_; distance *= 2) {
      int at = distance > reached ? distance : reached + 1;
      while (at < count_ && !lives_(before(at))) ++at;
      if (at >= count_) break;
      found.push_back(before(at));
      reached = at;
    }
    return found;
  }

  // Passes something on to the `span` nodes before this one. For each part of the span it calls
  // send(node, its_span), one node after the other, until send() returns true.
  template <typename Send>
  void pass_on(int span, Send send) const {
    while (span > 0) {
      int part = 1;
      while (part * 2 <= span) part *= 2;
      for (int at = part; at <= span; ++at)
        if (lives_(before(at)) && send(before(at), span - at)) break;
      span = part - 1;
    }
  }

 private:
  const int count_;
  const int own_;
  const Lives lives_;
};

// A value.
struct Notice {
  enum class Kind : std::uint64_t {
    kLoss = 1,        // `value`: PeerSlot::wait_status
    kDeparture = 2,   // NodeSegment::mark_departed()
    kEnd = 3,         // `value`: EndKind; World::end()
    kExit = 4,        // `value`: the code; NodeSegment::request_exit()
    kGreeting = 5,    // no content: opens a connection, whose end is noticed
    kRepeatEnds = 6,  // `rank` died after its end; once for each rank
  };
  Kind kind = Kind::kLoss;
  int rank = 0;
  std::int32_t value = 0;
  std::uint32_t generation = 0;  // of the membership that ended; of kEnd
  std::int32_t span = 0;         // nodes that the receiver passes it on to; of kEnd

  MessageKey key() const {
    return {MessageKind::kNotice, static_cast<std::uint64_t>(kind),
            static_cast<std::uint64_t>(rank)};
  }
  std::vector<std::byte> bytes() const;
  // Decodes the arguments of a notice handler; nullopt if they are not a notice.
  static std::optional<Notice> decode(std::uint64_t id, std::uint64_t sequence,
                                      std::span<const std::byte> bytes);
};

// Writes it into the segment. Thread-safe.
void apply(const Notice& notice, const NodeSegment& segment);

// Whether a loss, a departure or a request to exit is not in the segment yet; false for other
// kinds.
bool is_news(const Notice& notice, const NodeSegment& segment);

// The losses and departures in the segment, in the order in which they were noted.
std::vector<Notice> losses(const NodeSegment& segment);

// The overlay as the PE `self` sees it: a node lives if one of its PEs is not dead. A PE that has
// begun to leave still passes notices on, until all have. Thread-safe; does not wait.
class NoticeRoutes {
 public:
  NoticeRoutes(int self, const NodeMap& nodes, const WaitContext& waiting, Messages& messages)
      : self_(self), nodes_(nodes), waiting_(waiting), messages_(messages) {}

  // The peers of this node's connections: the first living PE of each of its neighbors.
  std::vector<int> watched() const;
  // To the neighbors of this PE's node.
  void flood(const Notice& notice) const;
  // To the `notice.span` nodes before this PE's.
  void pass_on(const Notice& notice) const;
  // The losses and departures that this PE knows of, to a node of which a PE was lost: that PE may
  // have been the one to which they went.
  void repeat_losses(int node) const {
    for (const Notice& notice : losses(*waiting_.segment)) static_cast<void>(send(node, notice));
  }
  // Sends it to all other nodes, by flood() or pass_on().
  void tell(Notice notice) const;

 private:
  // -1: none. `besides` counts as dead.
  int first_living(int node, int besides = -1) const;
  auto overlay(int besides = -1) const {
    return NodeOverlay(nodes_.count(), nodes_.node_of(self_),
                       [this, besides](int node) { return first_living(node, besides) >= 0; });
  }
  bool send(int node, const Notice& notice) const;

  const int self_;
  const NodeMap& nodes_;
  const WaitContext& waiting_;
  Messages& messages_;
};

}  // namespace memspan::inline world
