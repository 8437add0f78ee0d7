// SPDX-License-Identifier: Apache-2.0
// What the recipes promise over every store: ranks, all-gathers, barriers, groups.
#include <gmock/gmock.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "store/recipes/all_gather.h"
#include "store/recipes/rank_recipe.h"
#include "store/recipes/store_group.h"
#include "stores.h"

namespace memspan::contract {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

using Texts = std::vector<std::string>;

// A look whether somebody else is there.
Deadline glance() {
  return Deadline::after(std::chrono::milliseconds(20));
}

// No caller returns before all have called.
Status barrier(KeyValueStore& store, std::string_view name, int rank, int size, Deadline deadline) {
  return allgather(store, name, rank, size, {}, deadline).status();
}

// Calls again while somebody else, who only looks whether this caller is there, has its rank.
template <typename Call>
auto insist(Call call) -> decltype(call()) {
  for (;;)
    if (auto result = call(); result.code() != Code::kUnavailable) return result;
}

using RanksTest = StoreTest;
MEMSPAN_FOR_ALL_STORES(RanksTest);

TEST_P(RanksTest, ARankThatIsAboutToBeFreeIsWaitedFor) {
  auto anna = join("anna");
  auto ben = join("ben");
  // The built-in server knows at once who has gone.
  if (anna->rank_service() != nullptr) return;
  ASSERT_TRUE(take_rank(*anna, "scope", 0, 1, soon()).is_ok());
  std::thread waiting([&] {
    const auto taken = take_freed_rank(*ben, "scope", 0, 1, soon());
    ASSERT_TRUE(taken.is_ok()) << taken.status().to_string();
    EXPECT_EQ(*taken, 0);
  });
  anna->end();
  waiting.join();
}

TEST_P(RanksTest, AllWhoArriveGetDifferentRanksWithoutGaps) {
  constexpr int kMembers = 8;
  std::mutex mutex;
  std::set<int> ranks;
  std::vector<std::unique_ptr<KeyValueStore>> members;
  for (int i = 0; i < kMembers; ++i) members.push_back(join("PE"));
  std::vector<std::thread> threads;
  for (auto& member : members)
    threads.emplace_back([&] {
      auto taken = take_rank(*member, "job", -1, 0, soon());
      ASSERT_TRUE(taken.is_ok()) << taken.status().to_string();
      const std::lock_guard lock(mutex);
      ranks.insert(*taken);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(ranks, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_P(RanksTest, ARankIsFreeAgainWhenItsMemberGivesItUpOrGoes) {
  auto anna = join("anna");
  auto ben = join("ben");
  auto cleo = join("cleo");
  EXPECT_EQ(*take_rank(*anna, "job", -1, 3, soon()), 0);
  EXPECT_EQ(*take_rank(*ben, "job", -1, 3, soon()), 1);
  EXPECT_TRUE(give_rank(*anna, "job", soon()).is_ok());
  EXPECT_EQ(give_rank(*anna, "job", soon()).code(), Code::kNotFound);
  EXPECT_EQ(*take_rank(*cleo, "job", -1, 0, soon()), 0);
  ben->end();
  while (take_rank(*anna, "job", 1, 3, soon()).code() == Code::kUnavailable)
    std::this_thread::yield();
  EXPECT_EQ(take_rank(*join("dan"), "job", 1, 3, soon()).code(), Code::kUnavailable);
}

TEST_P(RanksTest, RefusesWhatDoesNotFitAndNamesIt) {
  auto anna = join("anna");
  auto ben = join("ben");
  ASSERT_TRUE(take_rank(*anna, "job", 1, 2, soon()).is_ok());
  EXPECT_THAT(take_rank(*ben, "job", 1, 2, soon()).status().message(),
              HasSubstr("rank 1 is taken by anna"));
  EXPECT_THAT(take_rank(*ben, "job", 0, 3, soon()).status().message(),
              HasSubstr("this member says that there are 3 ranks, others said 2"));
  EXPECT_THAT(take_rank(*ben, "job", 2, 2, soon()).status().message(),
              HasSubstr("the rank is 2, allowed are 0 to 1"));
  EXPECT_EQ(take_rank(*ben, "job", 70000, 0, soon()).code(), Code::kInvalidArgument);
  ASSERT_TRUE(take_rank(*ben, "job", 0, 2, soon()).is_ok());
  EXPECT_THAT(take_rank(*join("cleo"), "job", -1, 0, soon()).status().message(),
              HasSubstr("all 2 ranks are taken"));
  EXPECT_EQ(*take_rank(*anna, "other", -1, 5, soon()), 0);
}

using AllGatherTest = StoreTest;
MEMSPAN_FOR_ALL_STORES(AllGatherTest);

TEST_P(AllGatherTest, GivesEverybodysBytesByRank) {
  constexpr int kMembers = 5;
  run_members(kMembers, [](KeyValueStore& store, int rank) {
    for (int round = 0; round < 4; ++round) {
      const std::string mine(static_cast<std::size_t>(rank * round), static_cast<char>('a' + rank));
      auto all = allgather(store, "name", rank, kMembers, mine, soon());
      ASSERT_TRUE(all.is_ok()) << all.status().to_string();
      ASSERT_EQ(all->size(), static_cast<std::size_t>(kMembers));
      for (int other = 0; other < kMembers; ++other)
        EXPECT_EQ((*all)[static_cast<std::size_t>(other)],
                  std::string(static_cast<std::size_t>(other * round), 'a' + other));
    }
  });
}

TEST_P(AllGatherTest, OneAloneWaitsForNobody) {
  auto anna = join("anna");
  EXPECT_EQ(*allgather(*anna, "name", 0, 1, "a", soon()), Texts{"a"});
  EXPECT_EQ(*allgather(*anna, "name", 0, 1, "b", soon()), Texts{"b"});
}

TEST_P(AllGatherTest, TheNextCallersMayBeOthersInAnyRankAndNumber) {
  auto anna = join("anna");
  auto ben = join("ben");
  auto cleo = join("cleo");
  const auto meet = [&](KeyValueStore& first, KeyValueStore& second) {
    std::thread other([&] {
      EXPECT_EQ(*allgather(second, "name", 1, 2, second.member(), soon()),
                (Texts{first.member(), second.member()}));
    });
    EXPECT_EQ(*allgather(first, "name", 0, 2, first.member(), soon()),
              (Texts{first.member(), second.member()}));
    other.join();
  };
  meet(*anna, *ben);
  meet(*ben, *anna);
  meet(*cleo, *anna);
  meet(*cleo, *ben);
  EXPECT_EQ(*allgather(*anna, "name", 0, 1, "alone", soon()), Texts{"alone"});
  meet(*anna, *ben);
}

TEST_P(AllGatherTest, NamesWhoIsMissingAtTheTimeOut) {
  auto anna = join("anna");
  auto ben = join("ben");
  const Deadline both = Deadline::after(std::chrono::milliseconds(400));
  std::thread other([&] {
    EXPECT_THAT(allgather(*ben, "name", 1, 3, "", both).status().message(),
                HasSubstr("1 of 3 members did not come: rank 2"));
  });
  const Status late = allgather(*anna, "name", 0, 3, "", both).status();
  other.join();
  EXPECT_EQ(late.code(), Code::kTimeout);
  EXPECT_THAT(late.message(), HasSubstr("1 of 3 members did not come: rank 2"));
}

// Rank 0 is the one that decides, if it is there.
TEST_P(AllGatherTest, ALateCallerFindsWhatTheOthersBrought) {
  auto anna = join("anna");
  auto ben = join("ben");
  for (const int late : {0, 1}) {
    const std::string name = "name " + std::to_string(late);
    KeyValueStore& first = late == 0 ? *ben : *anna;
    KeyValueStore& second = late == 0 ? *anna : *ben;
    const auto brief = Deadline::after(std::chrono::seconds(1));
    EXPECT_EQ(allgather(first, name, 1 - late, 2, "f0", brief).code(), Code::kTimeout);
    EXPECT_THAT(*allgather(second, name, late, 2, "s0", soon()), UnorderedElementsAre("f0", "s0"));
    std::thread other([&] {
      EXPECT_THAT(*allgather(second, name, late, 2, "s1", soon()),
                  UnorderedElementsAre("f1", "s1"));
    });
    EXPECT_THAT(*allgather(first, name, 1 - late, 2, "f1", soon()),
                UnorderedElementsAre("f1", "s1"));
    other.join();
  }
}

// At the moment at which the others give up.
TEST_P(AllGatherTest, TheLastToComeCompletesItWhoeverGaveUp) {
  for (const int late : {0, 1, 2}) {
    const std::string name = "name " + std::to_string(late);
    const auto deadline = Deadline::after(std::chrono::seconds(1));
    std::atomic<bool> is_over = false;
    run_members(3, [&](KeyValueStore& store, int rank) {
      if (rank != late) {
        static_cast<void>(allgather(store, name, rank, 3, "", deadline));
        while (!is_over) std::this_thread::yield();  // a member that ends takes its part away
        return;
      }
      while (!deadline.has_passed()) std::this_thread::yield();
      const auto all = allgather(store, name, rank, 3, "", soon());
      EXPECT_TRUE(all.is_ok()) << all.status().to_string();
      is_over = true;
    });
  }
}

TEST_P(AllGatherTest, RefusesWhatDoesNotFitAndNamesIt) {
  auto anna = join("anna");
  auto ben = join("ben");
  EXPECT_THAT(allgather(*anna, "name", 2, 2, "", soon()).status().message(),
              HasSubstr("the rank is 2, allowed are 0 to 1"));
  EXPECT_EQ(allgather(*anna, "name", 0, 0, "", soon()).code(), Code::kInvalidArgument);
  EXPECT_EQ(allgather(*anna, "name", 0, 65537, "", soon()).code(), Code::kInvalidArgument);
  std::thread waiting([&] {
    EXPECT_EQ(*insist([&] { return allgather(*anna, "name", 0, 2, "a", soon()); }),
              (Texts{"a", "b"}));
  });
  // As long as nobody waits there yet, the other values are as good.
  Status taken, size;
  while ((taken = allgather(*ben, "name", 0, 2, "", glance()).status()).code() == Code::kTimeout)
    continue;
  while ((size = allgather(*ben, "name", 1, 3, "", glance()).status()).code() == Code::kTimeout)
    continue;
  EXPECT_EQ(taken.code(), Code::kUnavailable);
  EXPECT_THAT(taken.message(), HasSubstr("rank 0 is taken by anna"));
  EXPECT_EQ(size.code(), Code::kInvalidArgument);
  EXPECT_THAT(size.message(), HasSubstr("rank 1 says that there are 3 members, others said 2"));
  EXPECT_EQ(*allgather(*ben, "name", 1, 2, "b", soon()), (Texts{"a", "b"}));
  waiting.join();
}

TEST_P(AllGatherTest, WhoLeavesEndsItsOwnWaitsToo) {
  auto anna = join("anna");
  std::atomic<bool> has_ended = false;
  std::thread waiting([&] {
    const Status status = allgather(*anna, "name", 0, 2, "a", soon()).status();
    EXPECT_EQ(status.code(), Code::kPeerLost) << status.to_string();
    has_ended = true;
  });
  while (!has_ended) static_cast<void>(leave_allgather(*anna, "name", soon()));
  waiting.join();
}

// As a program does that takes a new name each time. Which of the two forgets it is in turn.
TEST_P(AllGatherTest, WhoForgetsANameIsNotGone) {
  for (const int forgets : {0, 1}) {
    std::atomic<bool> has_forgotten = false;
    run_members(2, [&](KeyValueStore& store, int rank) {
      const std::string name = "name " + std::to_string(forgets);
      const std::string alive = name + " alive " + std::to_string(rank);
      ASSERT_TRUE(store.set(alive, "", soon(), KeyLife::kLease).is_ok());
      const auto meet = [&] { return allgather(store, name, rank, 2, "", soon(), alive); };
      EXPECT_TRUE(meet().is_ok());
      if (rank == forgets) {
        EXPECT_TRUE(leave_allgather(store, name, soon()).is_ok());
        const std::string own = rank == 0 ? "/allgather/first/slot" : "/allgather/slot/00001";
        EXPECT_EQ(store.get_now(name + own, soon()).code(), Code::kNotFound);
        has_forgotten = true;
      }
      while (!has_forgotten) std::this_thread::yield();
      const auto again = meet();
      EXPECT_TRUE(again.is_ok()) << again.status().to_string();
      if (rank == forgets) {
        EXPECT_TRUE(store.remove(alive, soon()).is_ok());
        EXPECT_TRUE(leave_allgather(store, name, soon()).is_ok());
      } else {
        EXPECT_EQ(meet().code(), Code::kPeerLost);
      }
    });
  }
}

TEST_P(AllGatherTest, AnyNumberMayBeAloneUnderOneName) {
  run_members(4, [&](KeyValueStore& store, int rank) {
    const std::string mine = std::to_string(rank);
    for (int round = 0; round < 3; ++round)
      EXPECT_EQ(*allgather(store, "name", 0, 1, mine, soon()), Texts{mine});
  });
}

TEST_P(AllGatherTest, RefusesMoreBytesThanFitForEverybody) {
  const std::string half(kMaxValueBytes / 2, 'v');
  run_members(2, [&](KeyValueStore& store, int rank) {
    EXPECT_EQ(allgather(store, "name", rank, 2, half, soon()).code(), Code::kInvalidArgument);
  });
}

// Of members that met before, a death is told at once, to all the same.
TEST_P(AllGatherTest, AMemberThatIsGoneFailsItForAllAlike) {
  auto cleo = join("cleo");
  std::atomic<int> waiting = 0;
  std::thread third([&] {
    EXPECT_TRUE(barrier(*cleo, "name", 2, 3, soon()).is_ok());
    while (waiting < 2) std::this_thread::yield();
    cleo->end();
  });
  run_members(2, [&](KeyValueStore& store, int rank) {
    EXPECT_TRUE(barrier(store, "name", rank, 3, soon()).is_ok());
    ++waiting;
    for (int again = 0; again < 2; ++again) {
      const Status status = barrier(store, "name", rank, 3, soon());
      EXPECT_EQ(status.code(), Code::kPeerLost);
      EXPECT_THAT(status.message(), HasSubstr("rank 2 (cleo) is gone"));
    }
    // Those who are left go on under another name.
    EXPECT_TRUE(barrier(store, "left", rank, 2, soon()).is_ok());
  });
  third.join();
}

// Whether it had contributed in time or not: it is complete for all others or for none.
TEST_P(AllGatherTest, AMemberThatGoesWhileOthersComeFailsItForAllOrForNone) {
  for (int round = 0; round < 10; ++round) {
    const std::string name = "name " + std::to_string(round);
    auto cleo = join("cleo");
    std::thread third([&] { static_cast<void>(barrier(*cleo, name, 2, 3, soon())); });
    std::atomic<int> codes[2] = {};
    std::atomic<int> entered = 0;
    std::thread ender([&] {
      while (entered < 2) std::this_thread::yield();
      cleo->end();
    });
    run_members(2, [&](KeyValueStore& store, int rank) {
      ++entered;
      const Deadline deadline = Deadline::after(std::chrono::milliseconds(500));
      codes[rank] = static_cast<int>(barrier(store, name, rank, 3, deadline).code());
    });
    third.join();
    ender.join();
    EXPECT_EQ(codes[0] == 0, codes[1] == 0) << round << ": " << codes[0] << " and " << codes[1];
  }
}

TEST_P(AllGatherTest, ReportsALostStore) {
  if (outlives_the_store()) GTEST_SKIP() << "does not apply: it waits for the next one";
  auto anna = join("anna");
  std::thread waiting(
      [&] { EXPECT_EQ(barrier(*anna, "name", 0, 2, soon()).code(), Code::kStoreLost); });
  store_.reset();
  waiting.join();
}

using GroupTest = StoreTest;
MEMSPAN_FOR_ALL_STORES(GroupTest);

TEST_P(GroupTest, NobodyLeavesABarrierBeforeEverybodyCame) {
  constexpr int kMembers = 5;
  std::atomic<int> came = 0;
  run_members(kMembers, [&](KeyValueStore& store, int rank) {
    StoreGroup group(store, "group", rank, kMembers);
    for (int round = 1; round <= 10; ++round) {
      ++came;
      ASSERT_TRUE(group.barrier(soon()).is_ok());
      EXPECT_GE(came, round * kMembers);
    }
  });
}

TEST_P(GroupTest, AllgatherGivesEverybodysBytesByRank) {
  constexpr int kMembers = 4;
  run_members(kMembers, [](KeyValueStore& store, int rank) {
    StoreGroup group(store, "group", rank, kMembers);
    for (int round = 0; round < 8; ++round) {
      auto all = group.allgather(std::to_string(10 * round + rank), soon());
      ASSERT_TRUE(all.is_ok()) << all.status().to_string();
      for (int other = 0; other < kMembers; ++other)
        EXPECT_EQ((*all)[static_cast<std::size_t>(other)], std::to_string(10 * round + other));
    }
  });
}

TEST_P(GroupTest, AGroupOfOneWaitsForNobodyAndNamesKeepGroupsApart) {
  auto anna = join("anna");
  StoreGroup one(*anna, "one", 0, 1);
  StoreGroup two(*anna, "two", 0, 1);
  EXPECT_TRUE(one.barrier(soon()).is_ok());
  EXPECT_EQ(*one.allgather("1", soon()), Texts{"1"});
  EXPECT_EQ(*two.allgather("2", soon()), Texts{"2"});
}

TEST_P(GroupTest, RefusesMoreBytesThanFitForEverybody) {
  const std::string half(kMaxValueBytes / 2, 'v');
  run_members(2, [&](KeyValueStore& store, int rank) {
    StoreGroup group(store, "group", rank, 2);
    EXPECT_EQ(group.allgather(half, soon()).code(), Code::kInvalidArgument);
    EXPECT_TRUE(group.barrier(soon()).is_ok());
  });
}

// Over before the others come, but after this member's bytes are in the store: etcd, on a busy
// machine, may take longer than brief() for that.
Deadline time_to_contribute() {
  return Deadline::after(std::chrono::seconds(1));
}

TEST_P(GroupTest, AFailedOperationStillCountsAndALateMemberFindsWhatOthersBrought) {
  auto anna = join("anna");
  auto ben = join("ben");
  StoreGroup first(*anna, "group", 0, 2);
  StoreGroup second(*ben, "group", 1, 2);
  const Status late = first.allgather("a0", time_to_contribute()).status();
  EXPECT_EQ(late.code(), Code::kTimeout);
  EXPECT_THAT(late.message(), HasSubstr("1 of 2 members did not come: rank 1"));
  EXPECT_EQ(*second.allgather("b0", soon()), (Texts{"a0", "b0"}));
  std::thread other([&] { EXPECT_EQ(*second.allgather("b1", soon()), (Texts{"a1", "b1"})); });
  EXPECT_EQ(*first.allgather("a1", soon()), (Texts{"a1", "b1"}));
  other.join();
}

TEST_P(GroupTest, RefusesWhatDoesNotFitAndNamesIt) {
  auto anna = join("anna");
  auto ben = join("ben");
  StoreGroup first(*anna, "group", 0, 3);
  EXPECT_EQ(first.barrier(brief()).code(), Code::kTimeout);
  EXPECT_THAT(StoreGroup(*ben, "group", 0, 3).barrier(soon()).message(),
              HasSubstr("rank 0 is taken by anna"));
  EXPECT_THAT(StoreGroup(*ben, "group", 1, 4).barrier(soon()).message(),
              HasSubstr("has 4 members, others said 3"));
}

TEST_P(GroupTest, AMemberThatGoesIsNamedToThoseWhoWaitAndThoseWhoCome) {
  auto cleo = join("cleo");
  std::atomic<int> waiting = 0;
  std::latch have_seen(2);  // or the end of one would be the next that the other sees
  std::thread third([&] {
    StoreGroup group(*cleo, "group", 2, 3);
    EXPECT_TRUE(group.barrier(soon()).is_ok());
    while (waiting == 0) std::this_thread::yield();
    cleo->end();
  });
  run_members(2, [&](KeyValueStore& store, int rank) {
    StoreGroup group(store, "group", rank, 3);
    EXPECT_TRUE(group.barrier(soon()).is_ok());
    ++waiting;
    for (int again = 0; again < 2; ++again) {
      const Status status = group.barrier(soon());
      EXPECT_EQ(status.code(), Code::kPeerLost);
      EXPECT_THAT(status.message(), HasSubstr("rank 2 (cleo) is gone"));
    }
    have_seen.arrive_and_wait();
  });
  third.join();
}

TEST_P(GroupTest, WhatAMemberContributedBeforeItWentStillCompletes) {
  auto anna = join("anna");
  auto ben = join("ben");
  auto cleo = join("cleo");
  StoreGroup first(*anna, "group", 0, 3);
  EXPECT_EQ(first.allgather("a", time_to_contribute()).code(), Code::kTimeout);
  EXPECT_EQ(StoreGroup(*cleo, "group", 2, 3).allgather("c", time_to_contribute()).code(),
            Code::kTimeout);
  cleo->end();
  StoreGroup second(*ben, "group", 1, 3);
  const auto texts = second.allgather("b", soon());
  ASSERT_TRUE(texts.is_ok()) << texts.status().to_string();
  EXPECT_EQ(*texts, (Texts{"a", "b", "c"}));
  EXPECT_EQ(second.barrier(soon()).code(), Code::kPeerLost);
  EXPECT_EQ(first.barrier(soon()).code(), Code::kPeerLost);
  // The place stays taken.
  auto dan = join("dan");
  const Status status = StoreGroup(*dan, "group", 2, 3).barrier(soon());
  EXPECT_EQ(status.code(), Code::kPeerLost);
  EXPECT_THAT(status.message(), HasSubstr("rank 2"));
}

TEST_P(GroupTest, WhoLeavesIsGoneAndTheNameIsFreeWhenAllHaveLeft) {
  for (int round = 0; round < 2; ++round)
    run_members(2, [&](KeyValueStore& store, int rank) {
      StoreGroup group(store, "group", rank, 2);
      EXPECT_EQ(group.leave(soon()).code(), Code::kNotFound);
      EXPECT_EQ(*group.allgather(std::to_string(rank), soon()), (Texts{"0", "1"}));
      if (rank == 0) {
        const Status status = group.barrier(soon());
        EXPECT_EQ(status.code(), Code::kPeerLost);
        EXPECT_THAT(status.message(), HasSubstr("rank 1 (PE 1) is gone: it left"));
      }
      EXPECT_TRUE(group.leave(soon()).is_ok());
      EXPECT_EQ(group.leave(soon()).code(), Code::kNotFound);
    });
}

// Loses what happens to the record of rank 1: as late as can be.
class LaggingStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  Result<std::uint64_t> watch(std::string_view prefix, StoreWatcher watcher,
                              Deadline deadline) override {
    if (!prefix.ends_with("/member/"))
      return ForwardingStore::watch(prefix, std::move(watcher), deadline);
    return ForwardingStore::watch(
        prefix,
        [this, watcher = std::move(watcher)](const StoreChange& change) {
          if (!lags_ || !change.key.ends_with("1")) watcher(change);
        },
        deadline);
  }
  void lag() { lags_ = true; }

 private:
  std::atomic<bool> lags_ = false;
};

TEST_P(GroupTest, TheLastPartOfAMemberCountsWhenItsRecordComesAfterItsEnd) {
  LaggingStore anna(join("anna"));
  auto ben = join("ben");
  StoreGroup first(anna, "group", 0, 2), second(*ben, "group", 1, 2);
  EXPECT_EQ(first.allgather("a", time_to_contribute()).code(), Code::kTimeout);  // it collects
  EXPECT_EQ(*second.allgather("b", soon()), (Texts{"a", "b"}));
  anna.lag();
  EXPECT_EQ(second.allgather("last", time_to_contribute()).code(), Code::kTimeout);
  EXPECT_TRUE(second.leave(soon()).is_ok());
  const auto texts = first.allgather("a", soon());
  ASSERT_TRUE(texts.is_ok()) << texts.status().to_string();
  EXPECT_EQ(*texts, (Texts{"a", "last"}));
  const Status status = first.barrier(soon());
  EXPECT_EQ(status.code(), Code::kPeerLost);
  EXPECT_THAT(status.message(), HasSubstr("rank 1 (ben) is gone: it left"));
}

TEST_P(GroupTest, ReportsALostStore) {
  if (outlives_the_store()) GTEST_SKIP() << "does not apply: it waits for the next one";
  auto anna = join("anna");
  StoreGroup group(*anna, "group", 0, 2);
  std::thread waiting([&] { EXPECT_EQ(group.barrier(soon()).code(), Code::kStoreLost); });
  store_.reset();
  waiting.join();
}

// Counts what a member asks of the store, and what the store tells it.
class CountingStore final : public ForwardingStore {
 public:
  CountingStore(std::unique_ptr<KeyValueStore> store, std::atomic<int>& requests,
                std::atomic<int>& events)
      : ForwardingStore(std::move(store)), requests_(requests), events_(events) {}
  Status set(std::string_view key, std::string_view value, Deadline deadline,
             KeyLife life) override {
    ++requests_;
    return ForwardingStore::set(key, value, deadline, life);
  }
  Result<std::string> get(std::string_view key, Deadline deadline) override {
    ++requests_;
    return ForwardingStore::get(key, deadline);
  }
  Result<std::string> get_now(std::string_view key, Deadline deadline) override {
    ++requests_;
    return ForwardingStore::get_now(key, deadline);
  }
  Result<std::string> compare_and_swap(std::string_view key, std::string_view expected,
                                       std::string_view desired, Deadline deadline,
                                       KeyLife life) override {
    ++requests_;
    return ForwardingStore::compare_and_swap(key, expected, desired, deadline, life);
  }
  Result<bool> remove(std::string_view key, Deadline deadline) override {
    ++requests_;
    return ForwardingStore::remove(key, deadline);
  }
  Result<StoreListing> list(std::string_view prefix, Deadline deadline) override {
    ++requests_;
    return ForwardingStore::list(prefix, deadline);
  }
  Result<std::uint64_t> watch(std::string_view prefix, StoreWatcher watcher,
                              Deadline deadline) override {
    ++requests_;
    return ForwardingStore::watch(
        prefix,
        [&events = events_, watcher = std::move(watcher)](const StoreChange& change) {
          ++events;
          watcher(change);
        },
        deadline);
  }
  Status unwatch(std::uint64_t watch, Deadline deadline) override {
    ++requests_;
    return ForwardingStore::unwatch(watch, deadline);
  }

 private:
  std::atomic<int>& requests_;
  std::atomic<int>& events_;
};

// A start of `size` members: a group is made, and all-gathers twice.
void expect_cheap_start(StoreUnderTest& store, int size) {
  std::atomic<int> requests = 0;
  std::atomic<int> events = 0;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      CountingStore member(store.join("PE " + std::to_string(rank)), requests, events);
      const std::string name = "start of " + std::to_string(size);
      const auto created = create_group(member, name, rank, size, "", soon());
      ASSERT_TRUE(created.is_ok()) << created.status().to_string();
      StoreGroup group(member, *created, rank);
      for (int round = 0; round < 2; ++round)
        EXPECT_TRUE(group.allgather(std::to_string(rank), soon()).is_ok());
    });
  for (std::thread& thread : threads) thread.join();
  // For a member, whatever their number; and for the one that collects.
  EXPECT_LE(requests, 20 * size + 40) << size << " members";
  EXPECT_LE(events, 20 * size + 40) << size << " members";
}

TEST_P(GroupTest, TheRequestsOfAStartGrowWithTheMembersOnly) {
  for (const int size : {4, 16, 64}) expect_cheap_start(*store_, size);
}

using CreateGroupTest = StoreTest;
MEMSPAN_FOR_ALL_STORES(CreateGroupTest);

TEST_P(CreateGroupTest, AllGetOneNameThatIsNeverUsedAgain) {
  constexpr int kMembers = 3;
  std::string names[2][kMembers];
  run_members(kMembers, [&](KeyValueStore& store, int rank) {
    for (auto& name : names) {
      auto created = create_group(store, "space", rank, kMembers, std::to_string(rank), soon());
      ASSERT_TRUE(created.is_ok()) << created.status().to_string();
      EXPECT_EQ(created->contributions, (Texts{"0", "1", "2"}));
      name[rank] = created->name;
      StoreGroup group(store, *created, rank);
      EXPECT_EQ(*group.allgather(std::to_string(rank), soon()), (Texts{"0", "1", "2"}));
    }
  });
  for (const auto& name : names)
    for (int rank : {1, 2}) EXPECT_EQ(name[rank], name[0]);
  EXPECT_NE(names[0][0], names[1][0]);
}

TEST_P(CreateGroupTest, WhoGivesUpHasNotTakenPart) {
  auto anna = join("anna");
  // Time enough to join on a busy machine.
  const auto deadline = Deadline::after(std::chrono::seconds(1));
  const Status late = create_group(*anna, "space", 0, 2, "a", deadline).status();
  EXPECT_EQ(late.code(), Code::kTimeout);
  EXPECT_THAT(late.message(), HasSubstr("1 of 2 members did not come: rank 1"));
  auto ben = join("ben");
  EXPECT_EQ(create_group(*ben, "space", 1, 2, "b", brief()).code(), Code::kTimeout);
  std::thread other([&] { EXPECT_TRUE(create_group(*ben, "space", 1, 2, "b", soon()).is_ok()); });
  EXPECT_EQ(create_group(*anna, "space", 0, 2, "a", soon())->contributions, (Texts{"a", "b"}));
  other.join();
}

TEST_P(CreateGroupTest, AMemberThatGoesWhileItWaitsFailsItForAll) {
  auto cleo = join("cleo");
  std::thread third([&] {
    EXPECT_EQ(insist([&] { return create_group(*cleo, "space", 2, 3, "", soon()); }).code(),
              Code::kStoreLost);
  });
  // Until it is there.
  auto probe = join("probe");
  Status taken;
  while ((taken = create_group(*probe, "space", 2, 3, "", glance()).status()).code() ==
         Code::kTimeout)
    continue;
  EXPECT_THAT(taken.message(), HasSubstr("rank 2 is taken by cleo"));
  auto anna = join("anna");
  std::thread first([&] {
    const Status status =
        insist([&] { return create_group(*anna, "space", 0, 3, "", soon()); }).status();
    EXPECT_EQ(status.code(), Code::kPeerLost);
    EXPECT_THAT(status.message(), HasSubstr("rank 2 (cleo) is gone"));
  });
  while (create_group(*probe, "space", 0, 3, "", glance()).code() == Code::kTimeout) continue;
  cleo->end();
  third.join();
  first.join();
}

TEST_P(CreateGroupTest, AnotherSizeFailsItForAll) {
  auto anna = join("anna");
  auto ben = join("ben");
  constexpr const char* kWhy = "rank 1 says that there are 2 members, others said 3";
  std::thread first([&] {
    EXPECT_THAT(
        insist([&] { return create_group(*anna, "space", 0, 3, "", soon()); }).status().message(),
        HasSubstr(kWhy));
  });
  while (create_group(*ben, "space", 0, 3, "", glance()).code() == Code::kTimeout) continue;
  EXPECT_THAT(create_group(*ben, "space", 1, 2, "", soon()).status().message(), HasSubstr(kWhy));
  first.join();
}

// From the moment that the group is there, and not only after its first operation.
TEST_P(CreateGroupTest, AMemberThatGoesAtOnceIsNoticed) {
  auto anna = join("anna");
  auto ben = join("ben");
  std::thread other([&] {
    EXPECT_TRUE(create_group(*ben, "space", 1, 2, "", soon()).is_ok());
    ben->end();
  });
  auto created = create_group(*anna, "space", 0, 2, "", soon());
  other.join();
  ASSERT_TRUE(created.is_ok()) << created.status().to_string();
  const Status status = StoreGroup(*anna, *created, 0).barrier(soon());
  EXPECT_EQ(status.code(), Code::kPeerLost);
  EXPECT_THAT(status.message(), HasSubstr("rank 1 (ben) is gone"));
}

TEST_P(CreateGroupTest, ACreatedGroupIsLeftAsAnyOther) {
  run_members(2, [](KeyValueStore& store, int rank) {
    auto created = create_group(store, "space", rank, 2, "", soon());
    ASSERT_TRUE(created.is_ok());
    StoreGroup group(store, *created, rank);
    if (rank == 1) {
      EXPECT_TRUE(group.leave(soon()).is_ok());
    } else {
      EXPECT_THAT(group.barrier(soon()).message(), HasSubstr("rank 1 (PE 1) is gone: it left"));
      EXPECT_TRUE(group.leave(soon()).is_ok());
    }
  });
}

}  // namespace
}  // namespace memspan::contract
