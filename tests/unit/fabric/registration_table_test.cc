// SPDX-License-Identifier: Apache-2.0
// The registration table, its registrations and the view that peers have of it.
#include "fabric/transfer/registration_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>

#include "fabric/transfer/registration_view.h"

namespace memspan::transfer {
namespace {

// What the owner has, and what a peer has mapped.
struct Both {
  RegistrationTable table;
  RegistrationPages pages;
  RegistrationView view{pages};

  static std::unique_ptr<Both> make() {
    auto own = RegistrationPages::create();
    EXPECT_TRUE(own.is_ok()) << own.status().to_string();
    auto descriptor = own->duplicate();
    auto pages = RegistrationPages::open(std::move(descriptor).value());
    EXPECT_TRUE(pages.is_ok()) << pages.status().to_string();
    return std::unique_ptr<Both>(
        new Both{RegistrationTable(std::move(own).value()), std::move(pages).value()});
  }
  bool covers(std::uint64_t base, std::uint64_t bytes) {
    view.refresh();
    return view.covers(base, bytes);
  }
};

TEST(RegistrationTableTest, APeerSeesWhatIsAddedAndRemoved) {
  auto both = Both::make();
  EXPECT_FALSE(both->covers(100, 1));
  const auto slot = both->table.add_slot({.base = 100, .bytes = 50});
  EXPECT_TRUE(both->covers(100, 50));
  EXPECT_TRUE(both->covers(149, 1));
  EXPECT_FALSE(both->covers(99, 1));
  EXPECT_FALSE(both->covers(150, 1));
  EXPECT_FALSE(both->covers(99, 2));
  EXPECT_FALSE(both->covers(149, 2));
  EXPECT_FALSE(both->covers(100, UINT64_MAX));
  both->table.remove_slot(slot);
  EXPECT_FALSE(both->covers(100, 1));
}

TEST(RegistrationTableTest, APieceLiesInOneRangeOfThoseThatOverlap) {
  auto both = Both::make();
  both->table.add_slot({.base = 100, .bytes = 100});
  both->table.add_slot({.base = 120, .bytes = 10});
  both->table.add_slot({.base = 150, .bytes = 100});
  const auto outer = both->table.add_slot({.base = 90, .bytes = 20});
  EXPECT_TRUE(both->covers(130, 70));
  EXPECT_FALSE(both->covers(130, 71));
  EXPECT_TRUE(both->covers(150, 100));
  EXPECT_FALSE(both->covers(149, 60));
  EXPECT_TRUE(both->covers(90, 20));
  both->table.remove_slot(outer);
  EXPECT_FALSE(both->covers(90, 20));
  EXPECT_TRUE(both->covers(100, 100));
}

TEST(RegistrationTableTest, OnlyAGroupIsJoined) {
  auto both = Both::make();
  for (std::uint64_t i = 0; i < 10; ++i)
    both->table.add_slot({.base = 1000 + 10 * i, .bytes = 10, .group = 1});
  both->table.add_slot({.base = 1100, .bytes = 10, .group = 2});
  EXPECT_TRUE(both->covers(1000, 100));
  EXPECT_TRUE(both->covers(1005, 90));
  EXPECT_FALSE(both->covers(1000, 101));
  EXPECT_FALSE(both->covers(1095, 10));
}

TEST(RegistrationTableTest, LibraryMemoryIsApart) {
  auto both = Both::make();
  both->table.add_slot({.base = 4096, .bytes = 100, .allocation = 3});
  const auto second = both->table.add_slot({.base = 8192, .bytes = 100, .allocation = 4});
  EXPECT_TRUE(both->view.refresh());
  EXPECT_FALSE(both->view.covers(4096, 1));
  ASSERT_NE(both->view.allocation_of(4096, 100), nullptr);
  EXPECT_EQ(both->view.allocation_of(4100, 96)->allocation, 3u);
  EXPECT_EQ(both->view.allocation_of(4100, 97), nullptr);
  EXPECT_EQ(both->view.allocation_of(8191, 1), nullptr);
  EXPECT_EQ(both->view.allocation_of(8192, UINT64_MAX), nullptr);
  both->table.remove_slot(second);
  EXPECT_TRUE(both->view.refresh());
  EXPECT_EQ(both->view.allocation_of(8192, 1), nullptr);
  EXPECT_TRUE(both->view.has_allocation(3) && !both->view.has_allocation(4));
}

TEST(RegistrationTableTest, IsClosedForGood) {
  auto both = Both::make();
  const auto is_open = [&] { return both->pages.header().state.load() == table_layout::kOpen; };
  EXPECT_TRUE(is_open());
  both->table.close();
  EXPECT_FALSE(is_open());
}

TEST(RegistrationTableTest, OpensNothingElse) {
  auto small = Pages::create(4096, "test");
  auto copy = small->duplicate();
  EXPECT_EQ(RegistrationPages::open(std::move(copy).value()).code(), Code::kInvalidArgument);
  auto empty = Pages::create(table_layout::kBytes, "test");
  copy = empty->duplicate();
  EXPECT_EQ(RegistrationPages::open(std::move(copy).value()).code(), Code::kInvalidArgument);
}

// Against a plain list: any order of changes, looked at after each, after some or after many.
TEST(RegistrationTableTest, AgreesWithAPlainListWhateverIsDone) {
  for (const int between : {1, 30, 6000}) {
    auto both = Both::make();
    std::minstd_rand random(static_cast<unsigned>(between));
    std::map<std::uint32_t, Range> list;
    for (int step = 0; step < 12'000; ++step) {
      if (list.size() < 40 || random() % 2 == 0) {
        const Range range{.base = 1 + random() % 2000, .bytes = 1 + random() % 60};
        list.emplace(both->table.add_slot(range), range);
      } else {
        auto gone = list.begin();
        std::advance(gone, random() % list.size());
        both->table.remove_slot(gone->first);
        list.erase(gone);
      }
      if (step % between != 0) continue;
      const std::uint64_t base = 1 + random() % 2000;
      const std::uint64_t bytes = 1 + random() % 60;
      bool expected = false;
      for (const auto& [slot, range] : list)
        expected |= range.base <= base && base + bytes <= range.base + range.bytes;
      ASSERT_EQ(both->covers(base, bytes), expected) << "at step " << step;
    }
  }
}

// While slots are used again and again, no reader takes one registration's base with another's
// size.
TEST(RegistrationTableTest, NoRegistrationIsReadTorn) {
  auto both = Both::make();
  std::atomic<bool> is_over{false};
  std::thread owner([&] {
    for (std::uint64_t i = 0; i < 60'000; ++i) {
      // Its bytes end at a multiple of 1000; a mixture would not.
      const std::uint64_t base = 1'000'000 + i % 1000;
      both->table.remove_slot(both->table.add_slot({.base = base, .bytes = 2'000'000 - base}));
    }
    is_over = true;
  });
  while (!is_over) EXPECT_FALSE(both->covers(1'500'000, 500'001));
  owner.join();
}

TEST(RegistrationTableTest, AWildTableIsOnlyBounded) {
  auto both = Both::make();
  both->table.add_slot({.base = UINT64_MAX - 10, .bytes = 100});
  both->table.add_slot({.base = 100, .bytes = 0});
  both->table.add_slot({.base = 500, .bytes = UINT64_MAX});
  both->table.add_slot({.base = 0, .bytes = UINT64_MAX, .allocation = 1});
  both->table.add_slot({.base = 200, .bytes = 10});
  EXPECT_TRUE(both->covers(200, 10));
  EXPECT_FALSE(both->covers(UINT64_MAX - 10, 5));
  EXPECT_FALSE(both->covers(500, 5));
}

TEST(RegistrationsTest, CountTheSameRange) {
  auto both = Both::make();
  EXPECT_TRUE(both->table.add(100, 10).is_ok());
  EXPECT_TRUE(both->table.add(100, 10).is_ok());
  EXPECT_TRUE(both->table.add(100, 20).is_ok());
  EXPECT_TRUE(both->covers(100, 20));
  EXPECT_TRUE(both->table.remove(100).is_ok());
  EXPECT_FALSE(both->covers(100, 20));
  EXPECT_TRUE(both->covers(100, 10));
  EXPECT_TRUE(both->table.remove(100).is_ok());
  EXPECT_TRUE(both->covers(100, 10));
  EXPECT_TRUE(both->table.remove(100).is_ok());
  EXPECT_FALSE(both->covers(100, 10));
  EXPECT_EQ(both->table.remove(100).code(), Code::kNotFound);
  EXPECT_EQ(both->table.remove(105).code(), Code::kNotFound);
}

TEST(RegistrationsTest, AJoinedOneThatGoesLeavesItsNeighbours) {
  auto both = Both::make();
  const Range ranges[] = {
      {.base = 120, .bytes = 10}, {.base = 100, .bytes = 10}, {.base = 110, .bytes = 12}};
  ASSERT_TRUE(both->table.add_joined(ranges).is_ok());
  EXPECT_TRUE(both->covers(100, 30));
  EXPECT_TRUE(both->table.remove(110).is_ok());
  EXPECT_TRUE(both->covers(100, 10) && both->covers(120, 10));
  EXPECT_FALSE(both->covers(100, 11) || both->covers(110, 1));
}

TEST(RegistrationsTest, HaveRoomForSoMany) {
  auto both = Both::make();
  const std::size_t room = both->table.room();
  EXPECT_GE(room, 1'048'576u);
  std::vector<Range> many(room, Range{.base = 100, .bytes = 1});
  many.push_back({.base = 200, .bytes = 1});
  EXPECT_EQ(both->table.add_joined(many).code(), Code::kOutOfMemory);
  EXPECT_FALSE(both->covers(100, 1));
  EXPECT_EQ(both->table.room(), room);
}

TEST(RegistrationsTest, RefuseWhatIsNoMemory) {
  EXPECT_EQ(check_range(0, 1).code(), Code::kInvalidArgument);
  EXPECT_EQ(check_range(1, 0).code(), Code::kInvalidArgument);
  EXPECT_EQ(check_range(2, UINT64_MAX - 1).code(), Code::kInvalidArgument);
  EXPECT_TRUE(check_range(1, UINT64_MAX - 1).is_ok());
}

}  // namespace
}  // namespace memspan::transfer
