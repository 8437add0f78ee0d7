// SPDX-License-Identifier: Apache-2.0
#include "world/board.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string_view>

#include "world/membership_steps.h"

namespace memspan {
namespace {

TEST(BoardTest, ASecondMappingShowsTheSameBoard) {
  Board made = Board::create(3, 1 << 20, true).value();
  Board attached = Board::attach(Fd(dup(made.descriptor()))).value();
  EXPECT_EQ(attached.peers(), 3);
  EXPECT_EQ(attached.header().oversubscribed, 1u);
  made.peer(2).pid.store(77);
  EXPECT_EQ(attached.peer(2).pid.load(), 77);
  EXPECT_EQ(std::string_view(made.header().secret, 64).find('\0'), std::string_view::npos);
}

TEST(BoardTest, RefusesImpossibleSizesAndOtherMemory) {
  EXPECT_EQ(Board::create(0, 1 << 20, false).code(), Code::kInvalidArgument);
  EXPECT_EQ(Board::create(kMostPeersPerHost + 1, 1 << 20, false).code(), Code::kInvalidArgument);
  Pages other = Pages::create(1 << 16, "other").value();
  EXPECT_EQ(Board::attach(Fd(dup(other.descriptor()))).code(), Code::kInvalidArgument);
}

TEST(BoardTest, ADeathIsNotedOnceAndOnlyOfMembers) {
  Board board = Board::create(3, 1 << 20, false).value();
  ASSERT_TRUE(claim_rank(board, 0).is_ok());
  ASSERT_TRUE(claim_rank(board, 1).is_ok());
  board.peer(0).state.store(PeerState::kLeft);
  EXPECT_FALSE(board.mark_lost(0, -1));
  EXPECT_TRUE(board.mark_lost(1, 9));
  EXPECT_FALSE(board.mark_lost(1, 9));
  EXPECT_EQ(board.header().alarms.load(), 1u);
  EXPECT_EQ(board.peer(1).wait_status.load(), 9);
}

TEST(BoardTest, ARankBelongsToOneProcessUntilItLeaves) {
  Board board = Board::create(1, 1 << 20, false).value();
  ASSERT_TRUE(claim_rank(board, 0).is_ok());
  EXPECT_EQ(claim_rank(board, 0).code(), Code::kUnavailable);
  board.peer(0).state.store(PeerState::kLeft);
  EXPECT_TRUE(claim_rank(board, 0).is_ok());
  EXPECT_EQ(board.peer(0).generation.load(), 2u);
  ASSERT_TRUE(board.mark_lost(0, -1));
  EXPECT_EQ(claim_rank(board, 0).code(), Code::kUnavailable);
}

TEST(BoardTest, TheFirstRequestToEndHolds) {
  Board board = Board::create(2, 1 << 20, false).value();
  board.request_exit(1, 5);
  board.request_exit(0, 6);
  EXPECT_EQ(board.header().exit_requested.load(), 2u);
  EXPECT_EQ(board.header().exit_code.load(), 5);
  EXPECT_EQ(board.header().exit_rank.load(), 1);
}

}  // namespace
}  // namespace memspan
