// SPDX-License-Identifier: Apache-2.0
#include "pgas/team.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <random>
#include <thread>

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

TEST_P(TeamTest, NobodyPassesABarrierBeforeAllHaveCome) {
  std::atomic<int> arrived{0};
  run_job(GetParam(), [&](Team& team) {
    for (int round = 1; round <= 200; ++round) {
      arrived.fetch_add(1);
      ASSERT_TRUE(team.barrier("test").is_ok());
      ASSERT_GE(arrived.load(), round * team.size());
    }
  });
}

TEST_P(TeamTest, ABarrierCarriesEverybodysWords) {
  run_job(GetParam(), [&](Team& team) {
    for (std::uint64_t round = 0; round < 100; ++round) {
      const std::uint64_t words[] = {round,
                                     static_cast<std::uint64_t>(team.index()) * 1000 + round};
      ASSERT_TRUE(team.barrier("test", words, 2).is_ok());
      for (int member = 0; member < team.size(); ++member) {
        ASSERT_EQ(team.word(member, 0), round);
        ASSERT_EQ(team.word(member, 1), static_cast<std::uint64_t>(member) * 1000 + round);
      }
    }
  });
}

TEST_P(TeamTest, TheTeamOfMappedMemoryIsThatOfTheNode) {
  run_job(GetParam(), [&](Team& world) {
    auto node = world.split_mapped("test").value();
    EXPECT_EQ(node->nodes(), nullptr);
    int members = 0;
    for (int peer = 0; peer < world.size(); ++peer)
      if (world.world().is_near(peer)) {
        EXPECT_EQ(node->peer_of(members++), peer);
      }
    EXPECT_EQ(node->size(), members);
    for (int round = 0; round < 10; ++round) ASSERT_TRUE(node->barrier("test").is_ok());
    ASSERT_TRUE(node->destroy("test").is_ok());
  });
}

TEST_P(TeamTest, AShrunkTeamOfTheLivingIsTheSame) {
  run_job(GetParam(), [&](Team& world) {
    auto team = world.shrink("test");
    ASSERT_TRUE(team.is_ok()) << team.status().to_string();
    EXPECT_EQ((*team)->size(), world.size());
    EXPECT_EQ((*team)->index(), world.index());
    for (int round = 0; round < 10; ++round) ASSERT_TRUE((*team)->barrier("test").is_ok());
    ASSERT_TRUE((*team)->destroy("test").is_ok());
  });
}

TEST_P(TeamTest, SplitsReversesNestsAndDestroys) {
  run_job(GetParam(), [&](Team& world) {
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
        ASSERT_TRUE(half->barrier("test").is_ok());
        ASSERT_TRUE(half->destroy("test").is_ok());
      }
      ASSERT_TRUE(backward->destroy("test").is_ok());
    }
    // destroy() ends on the others before the first member gives the area back.
    ASSERT_TRUE(world.barrier("test").is_ok());
    if (!world.is_node_leader()) {
      EXPECT_EQ(end_of_internal_use(world.world()), 0u);
    }
  });
}

TEST_P(TeamTest, CallersThatDisagreeAllFail) {
  if (GetParam().peers < 2) return;  // nobody to disagree with
  run_job(GetParam(), [&](Team& world) {
    int size = world.index() == 0 ? 1 : 2;
    EXPECT_EQ(world.split("test", {0, 1, size}).code(), Code::kInvalidArgument);
    EXPECT_TRUE(world.barrier("test").is_ok());
  });
}

// The calls of a program in any order, each with a root of its own.
TEST_P(TeamTest, BroadcastsAmongBarriersCarryTheRootsWords) {
  run_job(GetParam(), [](Team& team) {
    std::minstd_rand dice(7);  // the same on all members
    for (std::uint64_t step = 0; step < 3000; ++step) {
      const int root = static_cast<int>(dice() % static_cast<unsigned>(team.size()));
      const std::uint64_t word = step * 64 + static_cast<std::uint64_t>(team.index());
      switch (dice() % 4) {
        case 0: {
          ASSERT_TRUE(team.barrier("test", &word, 1).is_ok());
          for (int member = 0; member < team.size(); ++member)
            ASSERT_EQ(team.word(member, 0), step * 64 + static_cast<std::uint64_t>(member));
          break;
        }
        case 1: {
          ASSERT_TRUE(team.make_room("test").is_ok());
          if (team.index() == root) std::memcpy(team.my_eager_buffer(), &word, sizeof word);
          ASSERT_TRUE(
              team.barrier_of_root("test", {CollectiveKind::kBroadcast, 8, root}, root).is_ok());
          std::uint64_t got = 0;
          std::memcpy(&got, team.eager_buffer(root), sizeof got);
          if (team.index() != root) {
            ASSERT_EQ(got, step * 64 + static_cast<std::uint64_t>(root));
          }
          break;
        }
        default: {
          ASSERT_TRUE(team.barrier_of_root("test", {CollectiveKind::kBroadcast, 8, root}, root,
                                           &word, team.index() == root ? 1 : 0)
                          .is_ok());
          if (team.index() != root) {
            ASSERT_EQ(team.word(root, 0), step * 64 + static_cast<std::uint64_t>(root));
          }
        }
      }
    }
  });
}

TEST(TeamsTest, TheRootOfABroadcastDoesNotWaitForTheOthers) {
  std::atomic<bool> is_ahead{false};
  run_job(3, false, [&](Team& team) {
    const CollectiveSignature signature{CollectiveKind::kBroadcast, 8, 1};
    const auto wait_for_root = [&] {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (!is_ahead.load() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      ASSERT_TRUE(is_ahead.load());
    };
    if (team.index() != 1) wait_for_root();
    for (std::uint64_t word = 0; word < 3; ++word) {
      ASSERT_TRUE(
          team.barrier_of_root("test", signature, 1, &word, team.index() == 1 ? 1 : 0).is_ok());
      if (team.index() != 1) {
        ASSERT_EQ(team.word(1, 0), word);
      }
    }
    if (team.index() == 1) is_ahead.store(true);
    ASSERT_TRUE(team.barrier("test").is_ok());
  });
}

// Each is a root that waits for nobody, and learns of the other at its next barrier.
TEST(TeamsTest, TwoRootsOfOneBroadcastEndTheTeam) {
  run_job(2, false, [](Team& world) {
    const auto part = world.split("test", {0, 1, 2}).value();
    Team& team = *part;
    const int root = team.index();
    (void)team.barrier_of_root("test", {CollectiveKind::kBroadcast, 8, root}, root);
    const Status status = team.barrier("test");
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.to_string();
    EXPECT_NE(status.message().find("a broadcast before this call"), std::string::npos)
        << status.message();
    EXPECT_NE(status.message().find("PE_root"), std::string::npos) << status.message();
    EXPECT_EQ(team.barrier("test").code(), Code::kInvalidArgument);
  });
}

// Member 2 dies at one of three points of a barrier by counter, after it has set its flag.
enum class Dies { kBeforeItIsCounted, kCounted, kAsTheLastOneBeforeTheRelease };
class CounterTest : public testing::TestWithParam<Dies> {};
INSTANTIATE_TEST_SUITE_P(Deaths, CounterTest,
                         testing::Values(Dies::kBeforeItIsCounted, Dies::kCounted,
                                         Dies::kAsTheLastOneBeforeTheRelease));

TEST_P(CounterTest, ABarrierThatADeadMemberEnteredIsOverForAllTheLiving) {
  std::atomic<int> begun{0};
  std::atomic<int> flags{0};
  std::atomic<bool> is_dead{false};
  std::atomic<bool> has_passed{false};
  run_job({.peers = 3, .oversubscribed = true, .has_deaths = true}, [&](Team& team) {
    const SyncArea area(team.world().internal_area(0), team.size());
    const auto await = [](const auto& is_so) {
      while (!is_so()) std::this_thread::yield();
    };
    WaitContext& waiting = team.world().waiting();
    waiting.survives_deaths = true;
    waiting.limit = std::chrono::seconds(60);  // a failure instead of a hang
    ++begun;
    await([&] { return begun == 3; });
    if (team.index() != 0) {
      area.line(team.index(), 1).sequence = 1;
      ++flags;
    }
    if (team.index() == 2) {
      if (GetParam() == Dies::kAsTheLastOneBeforeTheRelease)
        await([&] { return area.header().entered == 2; });
      if (GetParam() != Dies::kBeforeItIsCounted) ++area.header().entered;
      EXPECT_TRUE(team.world().segment().mark_lost(2, SIGKILL));
      is_dead = true;
      return;
    }
    // Member 1 is counted only when the barrier is over for member 0.
    if (GetParam() == Dies::kCounted && team.index() == 1) await([&] { return has_passed.load(); });
    if (GetParam() != Dies::kAsTheLastOneBeforeTheRelease)
      await([&] { return flags == 2 && is_dead; });
    const Status over = team.barrier("test");
    EXPECT_TRUE(over.is_ok()) << over.to_string();
    if (team.index() == 0) has_passed = true;
    EXPECT_EQ(team.barrier("test").code(), Code::kPeerLost);
  });
}

// Member 1 dies in the first barrier of a team of the living, which it has entered. Member 2 knows
// that before it has seen the proposal, and waits for another one.
TEST(TeamsTest, ADeathInTheBarrierOfAShrunkTeamHoldsUpNoMember) {
  for (const bool by_counter : {false, true}) {
    std::atomic<int> begun{0};
    std::atomic<bool> is_dead{false};
    run_job({.peers = 4, .oversubscribed = by_counter, .has_deaths = true}, [&](Team& team) {
      const auto await = [](const auto& is_so) {
        while (!is_so()) std::this_thread::yield();
      };
      WaitContext& waiting = team.world().waiting();
      waiting.survives_deaths = true;
      waiting.limit = std::chrono::seconds(60);  // a failure instead of a hang
      const NodeSegment& segment = team.world().segment();
      ++begun;
      await([&] { return begun == 4; });
      if (team.index() == 3) {
        EXPECT_TRUE(segment.mark_lost(3, SIGKILL));
        return;
      }
      await([&] { return segment.peer(3).is_dead(); });
      if (team.index() == 1) {
        await([&] { return team.proposal() != 0; });
        waiting.limit = std::chrono::milliseconds(1);
        EXPECT_EQ(team.shrink("test").code(), Code::kTimeout);
        EXPECT_TRUE(segment.mark_lost(1, SIGKILL));
        is_dead = true;
        return;
      }
      if (team.index() == 2) await([&] { return is_dead.load(); });
      auto living = team.shrink("test");
      while (living.code() == Code::kPeerLost) living = team.shrink("test");
      ASSERT_TRUE(living.is_ok()) << living.status().to_string();
      EXPECT_EQ((*living)->size(), 2);
      EXPECT_TRUE((*living)->barrier("test").is_ok());
    });
  }
}

TEST(TeamsTest, ThousandsOfTeamsComeAndGo) {
  run_job(2, false, [&](Team& world) {
    std::vector<std::unique_ptr<Team>> teams;
    for (int i = 0; i < 2048; ++i) {
      auto team = world.split("test", {0, 1, 2});
      ASSERT_TRUE(team.is_ok()) << i << team.status().to_string();
      teams.push_back(std::move(*team));
    }
    for (auto& team : teams) ASSERT_TRUE(team->destroy("test").is_ok());
  });
}

}  // namespace
}  // namespace memspan
