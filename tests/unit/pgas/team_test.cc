// SPDX-License-Identifier: Apache-2.0
#include "pgas/team.h"

#include <atomic>

#include "unit/pgas/thread_job.h"

namespace memspan {
namespace {

TEST(TeamShapeTest, TranslatesBothWays) {
  for (TeamShape shape :
       {TeamShape{0, 1, 8}, TeamShape{1, 3, 3}, TeamShape{7, -2, 4}, TeamShape{5, 0, 1}}) {
    for (int member = 0; member < shape.size; ++member)
      EXPECT_EQ(shape.member_of(shape.peer_of(member)), member);
    EXPECT_EQ(shape.member_of(-1), -1);
    EXPECT_EQ(shape.member_of(8), -1);
  }
  EXPECT_EQ((TeamShape{1, 3, 3}).member_of(2), -1);
}

TEST(TeamShapeTest, MustLieInTheParent) {
  EXPECT_TRUE(check_shape({7, -2, 4}, 8).is_ok());
  for (TeamShape shape : {TeamShape{0, 1, 9}, TeamShape{-1, 1, 2}, TeamShape{0, 1, 0},
                          TeamShape{0, 0, 2}, TeamShape{0, -1, 2}, TeamShape{0, 1 << 30, 4}})
    EXPECT_EQ(check_shape(shape, 8).code(), Code::kInvalidArgument);
}

class TeamTest : public testing::TestWithParam<JobShape> {};
INSTANTIATE_TEST_SUITE_P(Jobs, TeamTest, all_job_shapes(), job_name);

TEST_P(TeamTest, NobodyPassesAMeetingBeforeAllHaveCome) {
  std::atomic<int> arrived{0};
  run_job(GetParam().peers, GetParam().oversubscribed, [&](Team& team) {
    for (int round = 1; round <= 200; ++round) {
      arrived.fetch_add(1);
      ASSERT_TRUE(team.meet("test").is_ok());
      ASSERT_GE(arrived.load(), round * team.size());
    }
  });
}

TEST_P(TeamTest, AMeetingCarriesEverybodysWords) {
  run_job(GetParam().peers, GetParam().oversubscribed, [&](Team& team) {
    for (std::uint64_t round = 0; round < 100; ++round) {
      const std::uint64_t words[] = {round,
                                     static_cast<std::uint64_t>(team.index()) * 1000 + round};
      ASSERT_TRUE(team.meet("test", words, 2).is_ok());
      for (int member = 0; member < team.size(); ++member) {
        ASSERT_EQ(team.word(member, 0), round);
        ASSERT_EQ(team.word(member, 1), static_cast<std::uint64_t>(member) * 1000 + round);
      }
    }
  });
}

TEST_P(TeamTest, SplitsReversesNestsAndDisbands) {
  run_job(GetParam().peers, GetParam().oversubscribed, [&](Team& world) {
    for (int round = 0; round < 20; ++round) {
      auto backward = world.split("test", {world.size() - 1, -1, world.size()}).value();
      ASSERT_NE(backward, nullptr);
      EXPECT_EQ(backward->index(), world.size() - 1 - world.index());
      EXPECT_EQ(backward->peer_of(0), world.size() - 1);
      TeamShape even{0, 2, (world.size() + 1) / 2};
      auto half = backward->split("test", even).value();
      EXPECT_EQ(half != nullptr, even.member_of(backward->index()) >= 0);
      if (half != nullptr) {
        EXPECT_EQ(half->peer_of(half->index()), world.index());
        ASSERT_TRUE(half->meet("test").is_ok());
        ASSERT_TRUE(half->disband("test").is_ok());
      }
      ASSERT_TRUE(backward->disband("test").is_ok());
    }
    // A disband ends on the others before the first member gives the area back.
    ASSERT_TRUE(world.meet("test").is_ok());
    if (world.index() != 0) {
      EXPECT_EQ(world.world().internal_bytes_in_use(), 0u);
    }
  });
}

TEST_P(TeamTest, CallersThatDisagreeAllFail) {
  if (GetParam().peers < 2) return;  // nobody to disagree with
  run_job(GetParam().peers, GetParam().oversubscribed, [&](Team& world) {
    int size = world.index() == 0 ? 1 : 2;
    EXPECT_EQ(world.split("test", {0, 1, size}).code(), Code::kInvalidArgument);
    EXPECT_TRUE(world.meet("test").is_ok());
  });
}

TEST(TeamsTest, ThousandsOfTeamsComeAndGo) {
  run_job(2, false, [&](Team& world) {
    std::vector<std::unique_ptr<Team>> teams;
    for (int i = 0; i < 2048; ++i) {
      auto team = world.split("test", {0, 1, 2});
      ASSERT_TRUE(team.is_ok()) << i << team.status().to_string();
      teams.push_back(std::move(*team));
    }
    for (auto& team : teams) ASSERT_TRUE(team->disband("test").is_ok());
  });
}

}  // namespace
}  // namespace memspan
