// SPDX-License-Identifier: Apache-2.0
// Claims of ranges, by one member and by many at once.
#include "store/recipes/ranges.h"

#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <latch>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "store/recipes/change_queue.h"
#include "stores.h"

namespace memspan::contract {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr RangeBounds kBounds{.begin = 100, .end = 10100, .step = 10};

Status take_any(std::uint64_t /*base*/) {
  return Status::ok();
}

using RangesTest = StoreTest;
MEMSPAN_FOR_ALL_STORES(RangesTest);

TEST_P(RangesTest, AllUsersOfANameHaveOneRange) {
  auto anna = join("anna");
  auto ben = join("ben");
  RangeRegistry first{*anna, "r", kBounds};
  RangeRegistry second{*ben, "r", kBounds};
  EXPECT_EQ(*first.claim("a", 35, "some", take_any, soon()), 100U);
  EXPECT_EQ(*second.claim("b", 5, "some", take_any, soon()), 140U);
  EXPECT_EQ(*second.claim("a", 35, "some", take_any, soon()), 100U);
  EXPECT_EQ(*first.claim("c", 5, "some", take_any, soon()), 150U);
}

TEST_P(RangesTest, PassesOverWhatSomethingElseHasInThisProcess) {
  auto anna = join("anna");
  RangeRegistry registry{*anna, "r", kBounds};
  const auto take = [](std::uint64_t base) {
    return base < 130 ? Status(Code::kUnavailable, "taken") : Status::ok();
  };
  EXPECT_EQ(*registry.claim("a", 20, "some", take, soon()), 140U);
  // Where others have it already, there is no other place.
  const auto none = [](std::uint64_t) { return Status(Code::kUnavailable, "taken"); };
  auto ben = join("ben");
  RangeRegistry other{*ben, "r", kBounds};
  EXPECT_EQ(other.claim("a", 20, "some", none, soon()).code(), Code::kUnavailable);
  const auto broken = [](std::uint64_t) { return Status(Code::kSystem, "broken"); };
  EXPECT_EQ(registry.claim("b", 20, "some", broken, soon()).code(), Code::kSystem);
}

TEST_P(RangesTest, AnotherLayoutIsRefusedAsLongAsTheNameHasUsers) {
  auto anna = join("anna");
  auto ben = join("ben");
  RangeRegistry first{*anna, "r", kBounds};
  RangeRegistry second{*ben, "r", kBounds};
  ASSERT_EQ(*first.claim("a", 20, "two of ten", take_any, soon()), 100U);
  const Status other = second.claim("a", 30, "three of ten", take_any, soon()).status();
  EXPECT_EQ(other.code(), Code::kInvalidArgument);
  EXPECT_THAT(other.message(), AllOf(HasSubstr("three of ten"), HasSubstr("two of ten")));
  EXPECT_EQ(*first.claim("a", 20, "two of ten", take_any, soon()), 100U);
  ASSERT_TRUE(first.release("a", soon()).is_ok());
  ASSERT_TRUE(second.claim("a", 30, "three of ten", take_any, soon()).is_ok());
  EXPECT_EQ(first.claim("a", 20, "two of ten", take_any, soon()).code(), Code::kInvalidArgument);
}

TEST_P(RangesTest, RangesWithoutUsersMakeRoomAndOthersDoNot) {
  auto anna = join("anna");
  auto ben = join("ben");
  RangeRegistry first{*anna, "r", kBounds};
  RangeRegistry second{*ben, "r", kBounds};
  ASSERT_TRUE(first.claim("a", 6000, "some", take_any, soon()).is_ok());
  ASSERT_TRUE(second.claim("b", 4000, "some", take_any, soon()).is_ok());
  const Status full = second.claim("c", 10, "some", take_any, soon()).status();
  EXPECT_EQ(full.code(), Code::kInvalidArgument);
  EXPECT_THAT(full.message(), HasSubstr("too little, or full"));
  ChangeQueue ends(*ben);
  ASSERT_TRUE(ends.watch("r/user/a/", soon()).is_ok());
  anna->end();  // as a death does, of which the others hear a moment later
  ASSERT_TRUE(ends.next(soon()).is_ok());
  EXPECT_EQ(*second.claim("c", 10, "some", take_any, soon()), 100U);
  EXPECT_EQ(second.claim("d", 11000, "some", take_any, soon()).code(), Code::kInvalidArgument);
}

// A member that continues only when both have found that no process uses the range at 100.
class Dropper final : public ForwardingStore {
 public:
  Dropper(std::unique_ptr<KeyValueStore> store, std::latch& both)
      : ForwardingStore(std::move(store)), both_(both) {}
  Result<StoreListing> list(std::string_view prefix, Deadline deadline) override {
    auto listed = ForwardingStore::list(prefix, deadline);
    if (prefix == "r/user/a/" && !std::exchange(has_met_, true)) both_.arrive_and_wait();
    return listed;
  }

 private:
  std::latch& both_;
  bool has_met_ = false;
};

// The second one may not drop what the first one claims in its place.
TEST_P(RangesTest, OfTwoMembersThatDropARangeAtOnceOneRemovesIt) {
  auto anna = join("anna");
  RangeRegistry before{*anna, "r", kBounds};
  ASSERT_EQ(*before.claim("a", 20, "two of ten", take_any, soon()), 100U);
  ASSERT_TRUE(before.release("a", soon()).is_ok());
  std::latch both(2);
  std::array<std::uint64_t, 2> bases{};
  std::vector<std::thread> threads;
  for (std::uint64_t& base : bases)
    threads.emplace_back([&] {
      Dropper store(join("dropper"), both);
      RangeRegistry registry{store, "r", kBounds};
      auto claimed = registry.claim("a", 30, "three of ten", take_any, soon());
      ASSERT_TRUE(claimed.is_ok()) << claimed.status().to_string();
      base = *claimed;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bases[0], 100U);
  EXPECT_EQ(bases[1], 100U);
  EXPECT_EQ(*before.claim("b", 10, "some", take_any, soon()), 130U);
}

// A member that, just before it would drop a range, waits for a new user of it.
class LateDropper final : public ForwardingStore {
 public:
  LateDropper(std::unique_ptr<KeyValueStore> store, std::function<void()> use)
      : ForwardingStore(std::move(store)), use_(std::move(use)) {}
  Result<StoreListing> list(std::string_view prefix, Deadline deadline) override {
    auto listed = ForwardingStore::list(prefix, deadline);
    if (prefix == "r/user/a/")
      if (const auto use = std::exchange(use_, nullptr)) use();
    return listed;
  }

 private:
  std::function<void()> use_;
};

TEST_P(RangesTest, ARangeThatGetsAUserWhileItIsDroppedStays) {
  auto anna = join("anna");
  RangeRegistry user{*anna, "r", kBounds};
  ASSERT_EQ(*user.claim("a", 20, "two of ten", take_any, soon()), 100U);
  ASSERT_TRUE(user.release("a", soon()).is_ok());
  LateDropper store(join("dropper"),
                    [&] { EXPECT_EQ(*user.claim("a", 20, "two of ten", take_any, soon()), 100U); });
  RangeRegistry late{store, "r", kBounds};
  const auto claimed = late.claim("a", 30, "three of ten", take_any, soon());
  EXPECT_EQ(claimed.code(), Code::kInvalidArgument);
  EXPECT_EQ(*user.claim("a", 20, "two of ten", take_any, soon()), 100U);
}

TEST_P(RangesTest, ManyMembersThatClaimAtOnceGetRangesThatDoNotOverlap) {
  constexpr int kMembers = 8;
  constexpr int kNames = 12;
  std::mutex mutex;
  std::map<std::string, std::set<std::uint64_t>> bases;
  std::latch have_joined(kMembers);
  std::latch have_claimed(kMembers);
  run_members(kMembers, [&](KeyValueStore& store, int rank) {
    RangeRegistry registry{store, "r", kBounds};
    have_joined.arrive_and_wait();
    for (int i = 0; i < kNames; ++i) {
      // Each name is claimed by two members, in another order.
      const int name = (i * (rank % 2 == 0 ? 1 : 5) + rank / 2 * 3) % kNames;
      const std::string owner = std::to_string(rank / 2) + "/" + std::to_string(name);
      auto base =
          registry.claim(owner, static_cast<std::uint64_t>(10 + name), "some", take_any, soon());
      ASSERT_TRUE(base.is_ok()) << base.status().to_string();
      const std::lock_guard lock(mutex);
      bases[owner].insert(*base);
    }
    have_claimed.arrive_and_wait();  // their users are there as long as they are
  });
  ASSERT_EQ(bases.size(), static_cast<std::size_t>(kMembers / 2 * kNames));
  std::map<std::uint64_t, std::uint64_t> ranges;
  for (const auto& [owner, of_it] : bases) {
    EXPECT_EQ(of_it.size(), 1U) << owner;
    const auto name = std::stoull(owner.substr(owner.find('/') + 1));
    EXPECT_TRUE(ranges.emplace(*of_it.begin(), *of_it.begin() + 10 + name).second) << owner;
  }
  std::uint64_t past = kBounds.begin;
  for (const auto& [begin, end] : ranges) {
    EXPECT_GE(begin, past);
    past = end;
  }
  EXPECT_LE(past, kBounds.end);
}

}  // namespace
}  // namespace memspan::contract
