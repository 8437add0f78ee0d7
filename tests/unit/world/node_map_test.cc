// SPDX-License-Identifier: Apache-2.0
#include "world/node_map.h"

#include <gtest/gtest.h>

namespace memspan {
namespace {

TEST(NodeMapTest, OneNodeHasEveryPeerByItsNumber) {
  const NodeMap map(5, "here");
  EXPECT_TRUE(map.is_one());
  EXPECT_EQ(map.count(), 1);
  EXPECT_EQ(map.peers(), 5);
  EXPECT_EQ(map.peers_in(0), 5);
  EXPECT_EQ(map.leader_of(0), 0);
  EXPECT_EQ(map.host_of(4), "here");
  EXPECT_EQ(map.describe(4), "PE 4");
  for (int peer = 0; peer < 5; ++peer) {
    EXPECT_EQ(map.node_of(peer), 0);
    EXPECT_EQ(map.index_of(peer), peer);
    EXPECT_EQ(map.peer_of(0, peer), peer);
    EXPECT_TRUE(map.share_node(0, peer));
  }
}

TEST(NodeMapTest, TheSameHostEverywhereIsOneNode) {
  EXPECT_TRUE(NodeMap::of_hosts({"a", "a", "a"}).is_one());
  EXPECT_EQ(NodeMap::of_hosts({"a", "a", "a"}).peers_in(0), 3);
}

TEST(NodeMapTest, UnevenNodes) {
  const NodeMap map = NodeMap::of_hosts({"a", "a", "a", "b"});
  EXPECT_FALSE(map.is_one());
  EXPECT_EQ(map.count(), 2);
  EXPECT_EQ(map.peers(), 4);
  EXPECT_EQ(map.peers_in(0), 3);
  EXPECT_EQ(map.peers_in(1), 1);
  EXPECT_EQ(map.leader_of(1), 3);
  EXPECT_EQ(map.index_of(3), 0);
  EXPECT_FALSE(map.share_node(2, 3));
  EXPECT_EQ(map.describe(3), "PE 3 on host b");
}

TEST(NodeMapTest, PeersOfANodeNeedNotFollowEachOther) {
  const NodeMap map = NodeMap::of_hosts({"b", "a", "b", "c", "a", "b"});
  EXPECT_EQ(map.count(), 3);
  EXPECT_EQ(map.host_of_node(0), "b");  // nodes are numbered by their lowest PE
  EXPECT_EQ(map.peers_in(0), 3);
  EXPECT_EQ(map.node_of(4), 1);
  for (int peer = 0; peer < 6; ++peer)
    EXPECT_EQ(map.peer_of(map.node_of(peer), map.index_of(peer)), peer);
}

}  // namespace
}  // namespace memspan
