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
    messages_.set_carriage(
        {[this](int peer, const MessageTag&, std::span<const std::byte>, const Deadline&) {
           if (peer == unreachable_) return Status(Code::kPeerLost, "no way to it");
           sent_to_.push_back(peer);
           return Status::ok();
         },
         {}});
  }

  NodeSegment segment_;
  WaitContext waiting_;
  Messages messages_{waiting_};
  NodeMap nodes_ = NodeMap::of_hosts({"a", "a", "b", "b"});
  NoticeRoutes routes_{0, nodes_, waiting_, messages_};
  std::vector<int> sent_to_;
  int unreachable_ = -1;
};

TEST_F(NoticesTest, AreReadBackAsTheyWereWritten) {
  const Notice notice{Notice::Kind::kEnd, 3, -7, 12, 5};
  const auto read = Notice::decode(notice.key().id, notice.key().sequence, notice.bytes());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, Notice::Kind::kEnd);
  EXPECT_EQ(read->rank, 3);
  EXPECT_EQ(read->value, -7);
  EXPECT_EQ(read->generation, 12u);
  EXPECT_EQ(read->span, 5);
}

TEST_F(NoticesTest, WhatIsNoneIsRefused) {
  const Notice notice;
  EXPECT_FALSE(Notice::decode(0, 0, notice.bytes()));
  EXPECT_FALSE(Notice::decode(99, 0, notice.bytes()));
  EXPECT_FALSE(Notice::decode(1, kMostPeers, notice.bytes()));
  EXPECT_FALSE(Notice::decode(1, 0, {}));
  for (const int span : {-1, kMostPeers}) {
    const Notice wrong{Notice::Kind::kEnd, 3, 0, 0, span};
    EXPECT_FALSE(Notice::decode(wrong.key().id, wrong.key().sequence, wrong.bytes()));
  }
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

// A member that leaves at once may be faster than a process that notes who has come.
TEST_F(NoticesTest, OfADepartureMayComeBeforeTheArrivalIsNoted) {
  segment_.peer(3).state.store(PeerState::kAbsent);
  const Notice departure{Notice::Kind::kDeparture, 3};
  EXPECT_TRUE(is_news(departure, segment_));
  apply(departure, segment_);
  EXPECT_EQ(segment_.peer(3).state.load(), PeerState::kLeft);
  EXPECT_EQ(segment_.header().deaths.load(), 1u);
  EXPECT_FALSE(is_news(departure, segment_));
}

TEST_F(NoticesTest, OfLossesAndDeparturesComeInTheirOrder) {
  EXPECT_TRUE(losses(segment_).empty());
  segment_.mark_lost(3, 9);
  segment_.mark_departed(0);
  segment_.mark_lost(1, kUnseenEnd);
  const std::vector<Notice> found = losses(segment_);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].kind, Notice::Kind::kLoss);
  EXPECT_EQ(found[0].rank, 3);
  EXPECT_EQ(found[0].value, 9);
  EXPECT_EQ(found[1].kind, Notice::Kind::kDeparture);
  EXPECT_EQ(found[1].rank, 0);
  EXPECT_EQ(found[2].rank, 1);
}

TEST_F(NoticesTest, GoToOnePeOfEachOtherNode) {
  routes_.tell({Notice::Kind::kLoss, 1});
  EXPECT_EQ(sent_to_, (std::vector<int>{2}));
}

TEST_F(NoticesTest, PassOverTheDeadAndTheUnreachable) {
  segment_.mark_lost(2, kUnseenEnd);
  routes_.tell({Notice::Kind::kLoss, 2});
  EXPECT_EQ(sent_to_, (std::vector<int>{3}));
  sent_to_.clear();
  unreachable_ = 3;
  routes_.tell({Notice::Kind::kLoss, 2});
  EXPECT_TRUE(sent_to_.empty());
}

// Its death is told before it is noted.
TEST_F(NoticesTest, OfLossesAreRepeatedToANodeThatMayHaveMissedThem) {
  segment_.mark_lost(1, kUnseenEnd);
  segment_.mark_lost(2, kUnseenEnd);
  routes_.repeat_losses(1);
  EXPECT_EQ(sent_to_, (std::vector<int>{3, 3}));
}

TEST_F(NoticesTest, OfADeathDoNotGoToTheDead) {
  routes_.tell({Notice::Kind::kLoss, 2});
  EXPECT_EQ(sent_to_, (std::vector<int>{3}));
}

TEST_F(NoticesTest, TheFirstLivingPeOfAnotherNodeIsWatched) {
  EXPECT_EQ(routes_.watched(), (std::vector<int>{2}));
  segment_.mark_lost(2, kUnseenEnd);
  EXPECT_EQ(routes_.watched(), (std::vector<int>{3}));
  segment_.mark_lost(3, kUnseenEnd);
  EXPECT_TRUE(routes_.watched().empty());
}

TEST_F(NoticesTest, AnEndGoesToAsManyNodesAsItsSpanSays) {
  routes_.pass_on({Notice::Kind::kEnd, 3, 1, 1, 0});
  EXPECT_TRUE(sent_to_.empty());
  routes_.pass_on({Notice::Kind::kEnd, 3, 1, 1, 1000});  // as many as there are
  EXPECT_EQ(sent_to_, (std::vector<int>{2}));
}

TEST_F(NoticesTest, AreNewsUntilTheSegmentShowsThem) {
  for (const Notice& notice :
       {Notice{Notice::Kind::kLoss, 2, kUnseenEnd}, Notice{Notice::Kind::kDeparture, 3},
        Notice{Notice::Kind::kExit, 1}}) {
    EXPECT_TRUE(is_news(notice, segment_));
    apply(notice, segment_);
    EXPECT_FALSE(is_news(notice, segment_));
  }
  EXPECT_FALSE(is_news({Notice::Kind::kLoss, 3, kUnseenEnd}, segment_));  // it left
  EXPECT_FALSE(is_news({Notice::Kind::kLoss, 4}, segment_));              // no such PE
}

}  // namespace
}  // namespace memspan
