// SPDX-License-Identifier: Apache-2.0
// The overlay network of a job's nodes: the connections that a node keeps, and how a notice reaches
// all. Nodes form a ring. A node's neighbors are 1, 2, 4, ... places before it; a barrier by
// dissemination sends to the same ones. So a job of n nodes has n * log2(n) connections instead of
// n * n, and about 2 * log2(n) others watch each node.
//
//   flood: to all neighbors, which pass on what is new to them. Survives the death of nodes on the
//          way, and sends n * log2(n) messages.
//   tree:  each receiver gets a span of the ring to pass it on to. Sends n messages. Those that
//          a dead node had to pass on are lost.
#pragma once

#include <vector>

namespace memspan {

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

}  // namespace memspan
