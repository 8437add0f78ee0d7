// SPDX-License-Identifier: Apache-2.0
#include "world/notices.h"

#include <gtest/gtest.h>

#include <bit>
#include <deque>
#include <set>
#include <utility>

namespace memspan {
namespace {

using Nodes = std::vector<int>;

auto all_but(const std::set<int>& dead) {
  return [dead](int node) { return !dead.contains(node); };
}

// Who hears of what `from` floods.
std::set<int> flood(int count, int from, const std::set<int>& dead) {
  std::set<int> heard{from};
  std::deque<int> next{from};
  while (!next.empty()) {
    for (const int node : NodeOverlay(count, next.front(), all_but(dead)).neighbors())
      if (heard.insert(node).second) next.push_back(node);
    next.pop_front();
  }
  return heard;
}

// How often each node hears what `from` passes on as a tree.
std::multiset<int> tree(int count, int from, const std::set<int>& dead) {
  std::multiset<int> heard;
  std::deque<std::pair<int, int>> next{{from, count - 1}};
  while (!next.empty()) {
    const auto [node, span] = next.front();
    next.pop_front();
    NodeOverlay(count, node, all_but(dead)).pass_on(span, [&](int to, int its_span) {
      heard.insert(to);
      next.emplace_back(to, its_span);
      return true;
    });
  }
  return heard;
}

TEST(NodeOverlayTest, NeighborsStandAtPowersOfTwo) {
  EXPECT_EQ(NodeOverlay(16, 3, all_but({})).neighbors(), (Nodes{2, 1, 15, 11}));
  EXPECT_EQ(NodeOverlay(5, 0, all_but({})).neighbors(), (Nodes{4, 3, 1}));
  EXPECT_TRUE(NodeOverlay(1, 0, all_but({})).neighbors().empty());
}

TEST(NodeOverlayTest, InPlaceOfADeadNeighborStandsTheNextLivingOne) {
  EXPECT_EQ(NodeOverlay(16, 3, all_but({2})).neighbors(), (Nodes{1, 0, 15, 11}));
  EXPECT_EQ(NodeOverlay(16, 3, all_but({2, 1, 0, 15, 14})).neighbors(), (Nodes{13, 12, 11, 10}));
  EXPECT_TRUE(NodeOverlay(3, 0, all_but({1, 2})).neighbors().empty());
}

// As before: every node is connected with every other one.
TEST(NodeOverlayTest, FiveNodesAreAMesh) {
  for (int count = 2; count <= 5; ++count) {
    std::set<std::pair<int, int>> connected;
    for (int node = 0; node < count; ++node)
      for (const int other : NodeOverlay(count, node, all_but({})).neighbors()) {
        connected.emplace(node, other);
        connected.emplace(other, node);
      }
    EXPECT_EQ(connected.size(), static_cast<std::size_t>(count * (count - 1))) << count;
  }
}

TEST(NodeOverlayTest, ANodeHasLogarithmicallyManyNeighbors) {
  for (const int count : {2, 3, 7, 64, 1000, 16384})
    EXPECT_EQ(NodeOverlay(count, count / 2, all_but({})).neighbors().size(),
              static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(count - 1))));
}

TEST(NodeOverlayTest, AFloodReachesAllTheLiving) {
  for (int count = 1; count <= 40; ++count)
    EXPECT_EQ(flood(count, count / 3, {}).size(), static_cast<std::size_t>(count)) << count;
  EXPECT_EQ(flood(64, 40, {39, 38, 36, 32, 24, 8}).size(), 58u);
}

// A rack that fails: all before its end are dead but for the one that tells.
TEST(NodeOverlayTest, AFloodReachesAllAroundARowOfDeadNodes) {
  std::set<int> dead;
  for (int node = 5; node < 37; ++node) dead.insert(node);
  EXPECT_EQ(flood(64, 37, dead).size(), 32u);
}

TEST(NodeOverlayTest, ATreeReachesEachOtherNodeOnce) {
  for (int count = 1; count <= 40; ++count)
    for (const int from : {0, count / 2}) {
      const std::multiset<int> heard = tree(count, from, {});
      EXPECT_EQ(heard.size(), static_cast<std::size_t>(count - 1)) << count;
      EXPECT_EQ(std::set<int>(heard.begin(), heard.end()).size(), heard.size()) << count;
      EXPECT_FALSE(heard.contains(from));
    }
}

TEST(NodeOverlayTest, ATreeGoesAroundTheDead) {
  const std::multiset<int> heard = tree(32, 0, {16, 24, 31, 8, 7});
  EXPECT_EQ(heard.size(), 26u);
  EXPECT_EQ(std::set<int>(heard.begin(), heard.end()).size(), 26u);
}

TEST(NodeOverlayTest, WhoCannotBeSentToIsPassedOver) {
  Nodes tried;
  NodeOverlay(8, 0, all_but({})).pass_on(7, [&](int node, int) {
    tried.push_back(node);
    return node != 4 && node != 3;
  });
  EXPECT_EQ(tried, (Nodes{4, 3, 2, 6, 7}));
}

}  // namespace
}  // namespace memspan
