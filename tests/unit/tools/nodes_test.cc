// SPDX-License-Identifier: Apache-2.0
#include "launcher/nodes.h"

#include <gtest/gtest.h>

#include <csignal>

namespace memspan::launcher {
namespace {

// Two simulated hosts: PEs 0, 1, 2 and PE 3.
class NodesTest : public testing::Test {
 protected:
  const NodeSegment& first() { return nodes_.segment_of(0); }
  const NodeSegment& second() { return nodes_.segment_of(3); }

  Nodes nodes_ = std::move(Nodes::make({3, 1}, 4)).value();
};

TEST_F(NodesTest, EachHasASegmentWithASlotForEveryone) {
  EXPECT_EQ(first().peers(), 4);
  EXPECT_EQ(second().peers(), 4);
  EXPECT_EQ(&nodes_.segment_of(2), &first());
  EXPECT_NE(&first(), &second());
  EXPECT_NE(nodes_.heap_for_children(0), nodes_.heap_for_children(3));
}

TEST_F(NodesTest, OneHostIsOneNode) {
  const Nodes nodes = std::move(Nodes::make({}, 4)).value();
  EXPECT_TRUE(nodes.map().is_one());
  EXPECT_EQ(&nodes.segment_of(0), &nodes.segment_of(3));
}

TEST_F(NodesTest, ADeathStandsOnAllSegments) {
  first().peer(1).state.store(PeerState::kJoined);
  first().peer(1).pid.store(77);
  nodes_.mark_lost(1, SIGKILL);
  for (const NodeSegment* segment : {&first(), &second()}) {
    EXPECT_EQ(segment->peer(1).state.load(), PeerState::kLost);
    EXPECT_EQ(segment->peer(1).wait_status.load(), SIGKILL);
    EXPECT_EQ(segment->peer(1).pid.load(), 77);
    EXPECT_EQ(segment->header().deaths.load(), 1u);
  }
}

TEST_F(NodesTest, OneThatLeftProperlyIsLostNowhere) {
  first().peer(1).state.store(PeerState::kLeft);
  second().peer(1).state.store(PeerState::kJoined);
  nodes_.mark_lost(1, 0);
  EXPECT_EQ(second().peer(1).state.load(), PeerState::kJoined);
}

TEST_F(NodesTest, ALossThatAProcessNotedIsPassedOn) {
  first().peer(2).state.store(PeerState::kJoined);
  first().mark_lost(2, kEndedByExit);
  nodes_.mark_lost(2, 0);
  EXPECT_EQ(second().peer(2).wait_status.load(), kEndedByExit);
}

TEST_F(NodesTest, ARequestToEndIsSeenWhereverItWasMade) {
  EXPECT_FALSE(nodes_.exit_request());
  second().request_exit(3, 7);
  const auto request = nodes_.exit_request();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->rank, 3);
  EXPECT_EQ(request->code, 7);
  EXPECT_EQ(first().header().exit_requested.load(), 2u);
  EXPECT_EQ(first().header().exit_code.load(), 7);
}

TEST_F(NodesTest, TheLibraryIsSeenOnAnyNode) {
  EXPECT_FALSE(nodes_.is_library_seen());
  second().header().library_seen.store(1);
  EXPECT_TRUE(nodes_.is_library_seen());
}

}  // namespace
}  // namespace memspan::launcher
