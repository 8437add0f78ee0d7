// SPDX-License-Identifier: Apache-2.0
#include "pgas/local_teams.h"

#include <fmt/format.h>
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
    run_job(GetParam(), [&](Team& world) {
      LocalTeams teams(world.world());
      ASSERT_TRUE(world.barrier("start").is_ok());
      body(world, teams);
    });
  }
};

void take_all_room(World& world) {
  for (std::uint64_t bytes = kInternalBytes; bytes >= kFalseSharingRange; bytes /= 2)
    while (world.allocate_internal(bytes)) {
    }
}

INSTANTIATE_TEST_SUITE_P(Jobs, LocalTeamsTest, all_job_shapes(), job_name);

TEST_P(LocalTeamsTest, MembersMakeATeamWhenTheyFirstMeet) {
  std::atomic<int> arrived{0};
  for_all([&](Team& world, LocalTeams& teams) {
    auto all = Team::local(teams, {world.size() - 1, -1, world.size()});
    for (int round = 1; round <= 100; ++round) {
      arrived.fetch_add(1);
      ASSERT_TRUE(all->barrier("test").is_ok());
      ASSERT_GE(arrived.load(), round * world.size());
    }
    ASSERT_TRUE(all->destroy("test").is_ok());
  });
}

TEST_P(LocalTeamsTest, TeamsOfTheSameMembersMeetAtOnePlace) {
  for_all([](Team& world, LocalTeams& teams) {
    const TeamShape shape{0, 1, world.size()};
    const std::uint64_t end = end_of_internal_use(world.world());
    for (int round = 0; round < 20; ++round) {
      auto one = Team::local(teams, shape);
      auto two = Team::local(teams, shape);
      // Others may be another way round, or have made it once for all.
      Team& first = world.index() % 2 == 0 ? *one : *two;
      for (Team* team : {&first, two.get(), one.get(), two.get()}) {
        const std::uint64_t words[] = {static_cast<std::uint64_t>(round * 10 + world.index())};
        ASSERT_TRUE(team->barrier("test", words, 1).is_ok());
        for (int member = 0; member < world.size(); ++member)
          ASSERT_EQ(team->word(member, 0), static_cast<std::uint64_t>(round * 10 + member));
      }
      ASSERT_TRUE(one->destroy("test").is_ok());
      ASSERT_TRUE(two->destroy("test").is_ok());
    }
    const bool is_first = world.is_node_leader();
    EXPECT_EQ(end_of_internal_use(world.world()) - end,
              is_first ? SyncArea::bytes_for(world.size()) : 0);
  });
}

TEST_P(LocalTeamsTest, AListOfPeersIsATeamToo) {
  for_all([](Team& world, LocalTeams& teams) {
    std::vector<int> peers;
    for (int peer = 0; peer < world.size(); ++peer) peers.push_back((peer + 1) % world.size());
    auto team = Team::local(teams, TeamShape::of(std::move(peers)));
    for (int round = 0; round < 20; ++round) ASSERT_TRUE(team->barrier("test").is_ok());
  });
}

TEST_P(LocalTeamsTest, UnusedAreasAreTakenBackWhenThereIsNoRoom) {
  std::barrier together(GetParam().peers);
  for_all([&](Team& world, LocalTeams& teams) {
    std::vector<int> peers(static_cast<std::size_t>(world.size()));
    std::iota(peers.begin(), peers.end(), 0);
    auto once = Team::local(teams, {0, 1, world.size()});
    auto later = Team::local(teams, TeamShape::of(peers));
    ASSERT_TRUE(once->barrier("test").is_ok());
    if (world.is_node_leader()) take_all_room(world.world());
    ASSERT_TRUE(once->destroy("test").is_ok());
    together.arrive_and_wait();
    EXPECT_TRUE(later->barrier("test").is_ok());
    auto again = Team::local(teams, {0, 1, world.size()});
    for (int times = 0; times < 2; ++times) {
      const Status status = again->barrier("test");
      EXPECT_EQ(status.code(), Code::kOutOfMemory) << status.to_string();
      const NodeMap& nodes = world.world().nodes();
      const int leader = nodes.leader_of(nodes.node_of(world.index()));
      EXPECT_THAT(status.message(),
                  testing::HasSubstr(fmt::format("PE {}, the first member", leader)));
    }
    EXPECT_TRUE(later->barrier("what is there is as before").is_ok());
  });
}

TEST(LocalTeamsOnNodesTest, ATeamGoesOnWhereOneNodeTookItsAreaBack) {
  for (const std::vector<int>& node_of :
       {std::vector{0, 1}, std::vector{0, 0, 1}, std::vector{0, 1, 1, 2}}) {
    const int peers = static_cast<int>(node_of.size());
    std::barrier together(peers);
    run_job({peers, true, node_of}, [&](Team& world) {
      LocalTeams teams(world.world());
      ASSERT_TRUE(world.barrier("start").is_ok());
      std::vector<int> turned;
      for (int peer = 0; peer < peers; ++peer) turned.push_back((peer + 1) % peers);
      const TeamShape shapes[] = {TeamShape{0, 1, peers}, TeamShape{peers - 1, -1, peers},
                                  TeamShape::of(std::move(turned))};
      bool is_full = false;
      // Each team takes the room of the one before it, but only on the node of PE 0.
      for (std::uint64_t round = 0; round < 12; ++round) {
        auto team = Team::local(teams, shapes[round % 3]);
        for (std::uint64_t times = 0; times < round % 4 + 1; ++times) {
          const std::uint64_t words[] = {round * 100 + times * 10 +
                                         static_cast<std::uint64_t>(team->index())};
          const Status status = team->barrier("test", words, 1);
          ASSERT_TRUE(status.is_ok()) << status.to_string();
          for (int member = 0; member < peers; ++member)
            ASSERT_EQ(team->word(member, 0),
                      round * 100 + times * 10 + static_cast<std::uint64_t>(member));
        }
        if (world.index() == 0 && !is_full) take_all_room(world.world());
        is_full = true;
        ASSERT_TRUE(team->destroy("test").is_ok());
        together.arrive_and_wait();
      }
    });
  }
}

TEST(LocalTeamsOnNodesTest, NoRoomOnOneNodeIsTheFailureOfAll) {
  for (const std::vector<int>& node_of : {std::vector{0, 0, 1}, std::vector{0, 1, 1, 2}}) {
    const int peers = static_cast<int>(node_of.size());
    run_job({peers, true, node_of}, [&](Team& world) {
      LocalTeams teams(world.world());
      ASSERT_TRUE(world.barrier("start").is_ok());
      if (world.index() == 0)
        while (world.world().allocate_internal(kFalseSharingRange)) {
        }
      auto team = Team::local(teams, {0, 1, peers});
      for (int times = 0; times < 2; ++times)
        EXPECT_EQ(team->barrier("test").code(), Code::kOutOfMemory);
      // It stays so for whoever makes it again.
      auto again = Team::local(teams, {0, 1, peers});
      EXPECT_EQ(again->barrier("test").code(), Code::kOutOfMemory);
    });
  }
}

}  // namespace
}  // namespace memspan
