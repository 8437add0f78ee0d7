// SPDX-License-Identifier: Apache-2.0
// The overlay network of a job's nodes: with whom a node keeps connections, and how a notice gets
// to all. Nodes stand in a ring; a node's neighbors are those 1, 2, 4, ... places before it, which
// are the ones that a barrier by dissemination sends to. So a job of n nodes has n * log2(n)
// connections instead of n * n, and each node is watched by about 2 * log2(n) others.
//
//   flood: to all neighbors, who pass on what is new to them. Survives the death of nodes on the
//          way, and sends n * log2(n) messages.
//   tree:  each receiver gets a span of the ring to pass it on to. Sends n messages, and what a
//          node that dies had to pass on is lost.
#pragma once

#include <vector>

namespace memspan {

// A function of nodes: whether one can be sent to.
template <typename Lives>
class NodeOverlay {
 public:
  // 0 <= own < count.
  NodeOverlay(int count, int own, Lives lives) : count_(count), own_(own), lives_(lives) {}

  // The node so many places before this one.
  int before(int distance) const { return (own_ - distance % count_ + count_) % count_; }

  // Ascending in distance; in place of one that does not live the next living one beyond it.
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

  // Passes something on to the `span` nodes before this one: calls send(node, its_span), which says
  // whether it could be sent, for one of each part; where it could not, for the next of that part.
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

}  // namespace memspan
