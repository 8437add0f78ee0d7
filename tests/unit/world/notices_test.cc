// SPDX-License-Identifier: Apache-2.0
#include "world/notices.h"

#include <gtest/gtest.h>

#include <vector>

namespace memspan {
namespace {

// Four PEs on two nodes; this process is PE 0.
class NoticesTest : public testing::Test {
 protected:
  NoticesTest() : segment_(NodeSegment::create(4, 1 << 20, false).value()) {
    waiting_.segment = &segment_;
    waiting_.self = &segment_.peer(0);
    waiting_.generation = 1;
    for (int rank = 0; rank < 4; ++rank) segment_.peer(rank).state.store(PeerState::kJoined);
    messages_.set_carriage({[this](int peer, std::uint64_t, std::span<const std::byte>) {
                              if (peer == unreachable_)
                                return Status(Code::kPeerLost, "no way to it");
                              sent_to_.push_back(peer);
                              return Status::ok();
                            },
                            {}});
  }

  NodeSegment segment_;
  WaitContext waiting_;
  Messages messages_{waiting_};
  NodeMap nodes_ = NodeMap::of_hosts({"a", "a", "b", "b"});
  std::vector<int> sent_to_;
  int unreachable_ = -1;
};

TEST_F(NoticesTest, AreReadBackAsTheyWereWritten) {
  const Notice notice{Notice::Kind::kEnd, 3, -7, 12};
  const auto read = Notice::decode(notice.key().id, notice.key().sequence, notice.bytes());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, Notice::Kind::kEnd);
  EXPECT_EQ(read->rank, 3);
  EXPECT_EQ(read->value, -7);
  EXPECT_EQ(read->generation, 12u);
}

TEST_F(NoticesTest, WhatIsNoneIsRefused) {
  const Notice notice;
  EXPECT_FALSE(Notice::decode(0, 0, notice.bytes()));
  EXPECT_FALSE(Notice::decode(99, 0, notice.bytes()));
  EXPECT_FALSE(Notice::decode(1, kMostPeers, notice.bytes()));
  EXPECT_FALSE(Notice::decode(1, 0, {}));
  apply({Notice::Kind::kLoss, 4}, segment_);  // no such PE: nothing happens
  EXPECT_EQ(segment_.header().deaths.load(), 0u);
}

TEST_F(NoticesTest, AreWrittenIntoTheSegment) {
  apply({Notice::Kind::kLoss, 2, kUnseenEnd}, segment_);
  EXPECT_EQ(segment_.peer(2).state.load(), PeerState::kLost);
  apply({Notice::Kind::kDeparture, 3}, segment_);
  EXPECT_EQ(segment_.peer(3).state.load(), PeerState::kLeft);
  EXPECT_EQ(segment_.header().deaths.load(), 2u);
  apply({Notice::Kind::kEnd, 1, static_cast<int>(EndKind::kExit), 1}, segment_);
  EXPECT_TRUE(waiting_.is_gone(1));
  EXPECT_TRUE(waiting_.has_ends());
  apply({Notice::Kind::kExit, 1, 5}, segment_);
  EXPECT_EQ(segment_.header().exit_code.load(), 5);
}

TEST_F(NoticesTest, GoToOnePeOfEachOtherNode) {
  tell_other_nodes({Notice::Kind::kLoss, 1}, 0, nodes_, waiting_, messages_);
  EXPECT_EQ(sent_to_, (std::vector<int>{2}));
}

TEST_F(NoticesTest, PassOverTheDeadAndTheUnreachable) {
  segment_.mark_lost(2, kUnseenEnd);
  tell_other_nodes({Notice::Kind::kLoss, 2}, 0, nodes_, waiting_, messages_);
  EXPECT_EQ(sent_to_, (std::vector<int>{3}));
  sent_to_.clear();
  unreachable_ = 3;
  tell_other_nodes({Notice::Kind::kLoss, 2}, 0, nodes_, waiting_, messages_);
  EXPECT_TRUE(sent_to_.empty());
}

}  // namespace
}  // namespace memspan
