// SPDX-License-Identifier: Apache-2.0
#include "capi/smem/object_table.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <set>
#include <thread>

#include "capi/smem/of_process.h"

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
using Table = ObjectTable<Thing, ObjectKind::kPool, 4>;

TEST(ObjectTableTest, AHandleLeadsToItsObjectUntilItIsRemoved) {
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

TEST(ObjectTableTest, AStaleHandleDoesNotNameWhoHasTheSlotNow) {
  auto table = std::make_unique<Table>();
  void* first = table->add(std::make_unique<Thing>());
  table->remove(first);
  void* second = table->add(std::make_unique<Thing>());
  EXPECT_NE(first, second);
  EXPECT_FALSE(table->use(first));
  EXPECT_EQ(table->remove(first), nullptr);
  EXPECT_TRUE(table->use(second));
}

TEST(ObjectTableTest, WhatNoTableGaveOutNamesNothing) {
  auto table = std::make_unique<Table>();
  auto other = std::make_unique<ObjectTable<Thing, ObjectKind::kSpace, 4>>();
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

TEST(ObjectTableTest, AFullTableTakesNothingAndLosesNothing) {
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

TEST(ObjectTableTest, ARemovalWaitsForWhoUsesTheObjectAndNobodyElseComes) {
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
TEST(ObjectTableTest, UsesRemovalsAndAdditionsRace) {
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

TEST(ObjectTableTest, AChildOfForkBeginsWithAnEmptyTable) {
  using Processes = ObjectTable<Thing, ObjectKind::kEndpoint, 4>;
  void* handle = of_process<Processes>().add(std::make_unique<Thing>());
  const pid_t child = ::fork();
  if (child == 0) {
    auto& mine = of_process<Processes>();
    const bool is_empty = !mine.use(handle) && mine.handles().empty();
    ::_exit(is_empty && mine.add(std::make_unique<Thing>()) != nullptr ? 0 : 1);
  }
  int state = -1;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  EXPECT_TRUE(of_process<Processes>().use(handle));
  of_process<Processes>().remove(handle);
}

}  // namespace
}  // namespace memspan::capi
