// SPDX-License-Identifier: Apache-2.0
#include "pgas/local_teams.h"

#include <gmock/gmock.h>

#include <atomic>
#include <barrier>
#include <numeric>
#include <vector>

#include "memory/address_plan.h"
#include "unit/pgas/thread_job.h"

namespace memspan {
namespace {

class LocalTeamsTest : public testing::TestWithParam<JobShape> {
 protected:
  // `body` of each peer, which has its LocalTeams when all have met.
  static void for_all(const std::function<void(Team& world, LocalTeams& teams)>& body) {
    run_job(GetParam().peers, GetParam().oversubscribed, [&](Team& world) {
      LocalTeams teams(world.world());
      ASSERT_TRUE(world.meet("start").is_ok());
      body(world, teams);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Jobs, LocalTeamsTest, all_job_shapes(), job_name);

TEST_P(LocalTeamsTest, MembersMakeATeamWhenTheyFirstMeet) {
  std::atomic<int> arrived{0};
  for_all([&](Team& world, LocalTeams& teams) {
    auto all = Team::local(teams, {world.size() - 1, -1, world.size()});
    for (int round = 1; round <= 100; ++round) {
      arrived.fetch_add(1);
      ASSERT_TRUE(all->meet("test").is_ok());
      ASSERT_GE(arrived.load(), round * world.size());
    }
    ASSERT_TRUE(all->disband("test").is_ok());
  });
}

TEST_P(LocalTeamsTest, TeamsOfTheSameMembersMeetAtOnePlace) {
  for_all([](Team& world, LocalTeams& teams) {
    const TeamShape shape{0, 1, world.size()};
    const auto bytes = world.world().internal_bytes_in_use();
    for (int round = 0; round < 20; ++round) {
      auto one = Team::local(teams, shape);
      auto two = Team::local(teams, shape);
      // Others may be another way round, or have made it once for all.
      Team& first = world.index() % 2 == 0 ? *one : *two;
      for (Team* team : {&first, two.get(), one.get(), two.get()}) {
        const std::uint64_t words[] = {static_cast<std::uint64_t>(round * 10 + world.index())};
        ASSERT_TRUE(team->meet("test", words, 1).is_ok());
        for (int member = 0; member < world.size(); ++member)
          ASSERT_EQ(team->word(member, 0), static_cast<std::uint64_t>(round * 10 + member));
      }
      ASSERT_TRUE(one->disband("test").is_ok());
      ASSERT_TRUE(two->disband("test").is_ok());
    }
    const bool is_first = world.index() == 0;
    EXPECT_EQ(world.world().internal_bytes_in_use() - bytes,
              is_first ? SyncArea::bytes_for(world.size()) : 0);
  });
}

TEST_P(LocalTeamsTest, AListOfPeersIsATeamToo) {
  for_all([](Team& world, LocalTeams& teams) {
    std::vector<int> peers;
    for (int peer = 0; peer < world.size(); ++peer) peers.push_back((peer + 1) % world.size());
    auto team = Team::local(teams, TeamShape::of(std::move(peers)));
    for (int round = 0; round < 20; ++round) ASSERT_TRUE(team->meet("test").is_ok());
  });
}

TEST_P(LocalTeamsTest, UnusedAreasAreTakenBackWhenThereIsNoRoom) {
  std::barrier together(GetParam().peers);
  for_all([&](Team& world, LocalTeams& teams) {
    std::vector<int> peers(static_cast<std::size_t>(world.size()));
    std::iota(peers.begin(), peers.end(), 0);
    auto once = Team::local(teams, {0, 1, world.size()});
    auto later = Team::local(teams, TeamShape::of(peers));
    ASSERT_TRUE(once->meet("test").is_ok());
    // All the room that is left.
    if (world.index() == 0)
      for (std::uint64_t bytes = kInternalBytes; bytes >= kFalseSharingRange; bytes /= 2)
        while (world.world().allocate_internal(bytes)) {
        }
    ASSERT_TRUE(once->disband("test").is_ok());
    together.arrive_and_wait();
    EXPECT_TRUE(later->meet("test").is_ok());
    auto again = Team::local(teams, {0, 1, world.size()});
    for (int times = 0; times < 2; ++times) {
      const Status status = again->meet("test");
      EXPECT_EQ(status.code(), Code::kOutOfMemory) << status.to_string();
      EXPECT_THAT(status.message(), testing::HasSubstr("PE 0, the first member"));
    }
    EXPECT_TRUE(later->meet("what is there is as before").is_ok());
  });
}

}  // namespace
}  // namespace memspan
