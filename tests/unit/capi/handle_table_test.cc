// SPDX-License-Identifier: Apache-2.0
#include "capi/handle_table.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <set>
#include <thread>

#include "capi/smem/fork_aware_singleton.h"

namespace memspan::capi {
namespace {

// Says when it is gone; its value is only right while it lives.
struct Thing {
  explicit Thing(std::atomic<int>* counter = nullptr) : ends(counter) {}
  ~Thing() {
    value = -1;
    if (ends != nullptr) ++*ends;
  }
  int value = 42;
  std::atomic<int>* ends;
};
using Table = HandleTable<Thing, HandleKind::kPool, 4>;

TEST(HandleTableTest, AHandleLeadsToItsObjectUntilItIsRemoved) {
  auto table = std::make_unique<Table>();
  void* handle = table->add(std::make_unique<Thing>());
  ASSERT_NE(handle, nullptr);
  EXPECT_EQ(table->use(handle)->value, 42);
  EXPECT_EQ(table->handles(), std::vector<void*>{handle});
  EXPECT_EQ(table->remove(handle)->value, 42);
  EXPECT_FALSE(table->use(handle));
  EXPECT_EQ(table->remove(handle), nullptr);
  EXPECT_TRUE(table->handles().empty());
}

TEST(HandleTableTest, AStaleHandleDoesNotNameWhoHasTheSlotNow) {
  auto table = std::make_unique<Table>();
  void* first = table->add(std::make_unique<Thing>());
  table->remove(first);
  void* second = table->add(std::make_unique<Thing>());
  EXPECT_NE(first, second);
  EXPECT_FALSE(table->use(first));
  EXPECT_EQ(table->remove(first), nullptr);
  EXPECT_TRUE(table->use(second));
}

TEST(HandleTableTest, WhatNoTableGaveOutNamesNothing) {
  auto table = std::make_unique<Table>();
  auto other = std::make_unique<HandleTable<Thing, HandleKind::kSpace, 4>>();
  void* handle = table->add(std::make_unique<Thing>());
  EXPECT_FALSE(other->use(handle));
  EXPECT_EQ(other->remove(handle), nullptr);
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  // NULL, a small number, an address, the slot after the last, another generation.
  for (std::uintptr_t wrong :
       {std::uintptr_t{0}, std::uintptr_t{1}, reinterpret_cast<std::uintptr_t>(&table), number + 4,
        number + (std::uintptr_t{1} << 16), ~std::uintptr_t{0}}) {
    EXPECT_FALSE(table->use(reinterpret_cast<void*>(wrong))) << wrong;
    EXPECT_EQ(table->remove(reinterpret_cast<void*>(wrong)), nullptr) << wrong;
  }
  EXPECT_TRUE(table->use(handle));
}

TEST(HandleTableTest, AFullTableTakesNothingAndLosesNothing) {
  auto table = std::make_unique<Table>();
  std::set<void*> handles;
  for (std::uint32_t i = 0; i < Table::kMost; ++i)
    handles.insert(table->add(std::make_unique<Thing>()));
  EXPECT_EQ(handles.size(), Table::kMost);
  EXPECT_EQ(table->add(std::make_unique<Thing>()), nullptr);
  for (void* handle : handles) EXPECT_TRUE(table->use(handle));
  table->remove(*handles.begin());
  EXPECT_NE(table->add(std::make_unique<Thing>()), nullptr);
}

TEST(HandleTableTest, ARemovalWaitsForWhoUsesTheObjectAndNobodyElseComes) {
  auto table = std::make_unique<Table>();
  std::atomic<int> ends = 0;
  void* handle = table->add(std::make_unique<Thing>(&ends));
  std::promise<void> opener;
  std::promise<void> in_use;
  std::thread user([&] {
    auto used = table->use(handle);
    in_use.set_value();
    opener.get_future().wait();
    EXPECT_EQ(used->value, 42);
    EXPECT_EQ(ends, 0);
  });
  in_use.get_future().wait();
  std::thread remover([&] { EXPECT_NE(table->remove(handle), nullptr); });
  while (table->use(handle)) std::this_thread::yield();  // until the removal has begun
  EXPECT_EQ(ends, 0);
  opener.set_value();
  user.join();
  remover.join();
  EXPECT_EQ(ends, 1);
}

// Users, who hold on to handles for too long, against removers and adders: whoever gets an object
// gets a living one, each object is removed by one thread only, and none is lost.
TEST(HandleTableTest, UsesRemovalsAndAdditionsRace) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 3000;
  auto table = std::make_unique<Table>();
  std::atomic<int> ends = 0;
  std::atomic<int> added = 0;
  std::atomic<int> removed = 0;
  std::array<std::atomic<void*>, 4> shown{};
  const auto play = [&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      auto& place = shown[static_cast<std::size_t>(round + thread) % shown.size()];
      if (void* handle = table->add(std::make_unique<Thing>(&ends))) {
        ++added;
        if (table->remove(place.exchange(handle))) ++removed;  // or nobody would
      }
      for (auto& other : shown)
        if (auto used = table->use(other)) {
          EXPECT_EQ(used->value, 42);
        }
      if (auto object = table->remove(place)) {
        EXPECT_EQ(object->value, 42);
        ++removed;
      }
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back(play, thread);
  for (auto& thread : threads) thread.join();
  for (void* handle : table->handles())
    if (table->remove(handle)) ++removed;
  EXPECT_EQ(added, removed);
  EXPECT_GE(ends, added.load());  // also those that found the table full
  EXPECT_GT(added, kRounds);
}

TEST(HandleTableTest, AChildOfForkBeginsWithAnEmptyTable) {
  using Processes = HandleTable<Thing, HandleKind::kEndpoint, 4>;
  void* handle = fork_aware_singleton<Processes>().add(std::make_unique<Thing>());
  const pid_t child = ::fork();
  if (child == 0) {
    auto& mine = fork_aware_singleton<Processes>();
    const bool is_empty = !mine.use(handle) && mine.handles().empty();
    ::_exit(is_empty && mine.add(std::make_unique<Thing>()) != nullptr ? 0 : 1);
  }
  int state = -1;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  EXPECT_TRUE(fork_aware_singleton<Processes>().use(handle));
  fork_aware_singleton<Processes>().remove(handle);
}

using Numbers = HandleTable<Thing, HandleKind::kNumber, 65536>;

TEST(HandleTableTest, NumbersFitAnIntAndLeaveTheConstantsFree) {
  auto table = std::make_unique<Numbers>();
  std::set<std::uint64_t> seen;
  for (int round = 0; round < 1000; ++round) {
    const std::uint64_t number = table->add(std::make_unique<Thing>());
    EXPECT_GE(number, Numbers::kLeast);
    EXPECT_LT(number, std::uint64_t{1} << 31);
    EXPECT_TRUE(seen.insert(number).second);
    EXPECT_EQ(table->find(number)->value, 42);
    if (round % 2 == 0) {
      EXPECT_NE(table->remove(number), nullptr);
      EXPECT_EQ(table->find(number), nullptr);
    }
  }
  EXPECT_EQ(table->handles().size(), 500U);
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{65535},
                                     std::uint64_t{1} << 48, ~std::uint64_t{0}})
    EXPECT_EQ(table->find(number), nullptr) << number;
}

TEST(HandleTableTest, ManyFitAndNoMore) {
  auto table = std::make_unique<Numbers>();
  for (std::uint32_t i = 0; i < Numbers::kMost; ++i)
    ASSERT_NE(table->add(std::make_unique<Thing>()), 0U);
  EXPECT_EQ(table->add(std::make_unique<Thing>()), 0U);
  const std::uint64_t one = table->handles().at(777);
  EXPECT_NE(table->remove(one), nullptr);
  const std::uint64_t another = table->add(std::make_unique<Thing>());
  EXPECT_EQ(another & 0xffff, one & 0xffff);
  EXPECT_NE(another, one);
}

TEST(HandleTableTest, RemovesWhatMatches) {
  auto table = std::make_unique<Numbers>();
  std::atomic<int> ends{0};
  for (int i = 0; i < 10; ++i) {
    auto thing = std::make_unique<Thing>(&ends);
    thing->value = i;
    table->add(std::move(thing));
  }
  table->remove_if([](const Thing& thing) { return thing.value % 2 == 0; });
  EXPECT_EQ(ends, 5);
  table->clear();
  EXPECT_EQ(ends, 10);
  EXPECT_TRUE(table->handles().empty());
}

}  // namespace
}  // namespace memspan::capi
