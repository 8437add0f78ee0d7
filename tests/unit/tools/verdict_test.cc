// SPDX-License-Identifier: Apache-2.0
#include "launcher/verdict.h"

#include <gtest/gtest.h>

#include <csignal>

namespace memspan::launcher {
namespace {

// As wait(2) encodes them.
constexpr int exited(int code) {
  return code << 8;
}
constexpr int killed(int number) {
  return number;
}

class JudgeTest : public testing::Test {
 protected:
  void set_state(int rank, PeerState state) {
    nodes_.segment_of(rank).peer(rank).state.store(state);
  }

  Nodes nodes_ = std::move(Nodes::make({}, 4)).value();
  Judge judge_{nodes_};
};

TEST_F(JudgeTest, AProperEndIsNoFailure) {
  set_state(0, PeerState::kLeft);
  EXPECT_FALSE(judge_.first_failure({{0, 100, exited(0)}, {1, 101, exited(0)}}));
}

TEST_F(JudgeTest, DescribesASignalAndACode) {
  auto failure = judge_.first_failure({{2, 102, killed(SIGKILL)}});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, 137);
  EXPECT_EQ(failure->description,
            "was killed by signal 9 (Killed) [memspan-explain process-killed]");
  failure = judge_.first_failure({{1, 101, exited(3)}});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, 3);
  EXPECT_EQ(failure->description, "exited with code 3");
}

TEST_F(JudgeTest, OfSeveralTheOneThatWasKilledIsTheCause) {
  auto failure =
      judge_.first_failure({{0, 100, exited(1)}, {3, 103, killed(SIGSEGV)}, {1, 101, exited(1)}});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->ending.rank, 3);
}

TEST_F(JudgeTest, TheOneThatOthersNoticedComesFirst) {
  set_state(2, PeerState::kLost);
  auto failure = judge_.first_failure({{0, 100, exited(1)}, {2, 102, exited(4)}});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->ending.rank, 2);
}

TEST_F(JudgeTest, AnEndWithoutFinalizeIsAFailure) {
  set_state(1, PeerState::kJoined);
  auto failure = judge_.first_failure({{1, 101, exited(0)}});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, 1);
  EXPECT_EQ(failure->description,
            "exited with code 0 without shmem_finalize [memspan-explain no-finalize]");
}

TEST_F(JudgeTest, NeverJoiningIsAFailureOnceOthersJoined) {
  EXPECT_FALSE(judge_.first_failure({{1, 101, exited(0)}}));
  set_state(0, PeerState::kJoined);
  auto failure = judge_.first_failure({{0, 100, exited(1)}});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->ending.rank, 1);
  EXPECT_EQ(failure->description,
            "exited with code 0 without shmem_init [memspan-explain no-finalize]");
}

TEST_F(JudgeTest, WarnsOfAJobThatDoesNotUseTheLibrary) {
  ASSERT_TRUE(judge_.warning_about_strangers());
  EXPECT_NE(judge_.warning_about_strangers()->find("its 4 processes"), std::string::npos);
  nodes_.segment_of(3).header().library_seen.store(1);
  EXPECT_FALSE(judge_.warning_about_strangers());
}

TEST(FormatRanksTest, JoinsNeighbours) {
  EXPECT_EQ(format_ranks({0}), "0");
  EXPECT_EQ(format_ranks({0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
}

}  // namespace
}  // namespace memspan::launcher
