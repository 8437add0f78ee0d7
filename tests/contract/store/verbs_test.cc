// SPDX-License-Identifier: Apache-2.0
// What every store promises of its verbs, leases and watches.
#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "stores.h"

namespace memspan::contract {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

using VerbsTest = StoreTest;
MEMSPAN_FOR_ALL_STORES(VerbsTest);

// Changes as "+key=value" and "-key", for a thread that waits for the last of them.
class Seen {
 public:
  StoreWatcher watcher() {
    return [this](const StoreChange& change) {
      const std::lock_guard lock(mutex_);
      changes_.push_back(change.event == StoreEvent::kSet ? "+" + change.key + "=" + change.value
                                                          : "-" + change.key);
      changed_.notify_all();
    };
  }
  // Until `last` was seen.
  std::vector<std::string> until(const std::string& last) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_until(lock, soon().when(), [&] {
      return !changes_.empty() && changes_.back() == last;
    })) << testing::PrintToString(changes_);
    return changes_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> changes_;
};

TEST_P(VerbsTest, EveryMemberSeesWhatOneHasSet) {
  auto anna = join("anna");
  auto ben = join("ben");
  ASSERT_TRUE(anna->set("k", "one", soon()).is_ok());
  EXPECT_EQ(*ben->get("k", soon()), "one");
  ASSERT_TRUE(ben->set("k", "", soon()).is_ok());
  EXPECT_EQ(*anna->get_now("k", soon()), "");
  EXPECT_TRUE(*anna->remove("k", soon()));
  EXPECT_FALSE(*anna->remove("k", soon()));
  EXPECT_EQ(ben->get_now("k", soon()).code(), Code::kNotFound);
}

TEST_P(VerbsTest, AGetWaitsForTheKeyAndNoLongerThanItMay) {
  auto anna = join("anna");
  auto ben = join("ben");
  const Status late = anna->get("k", brief()).status();
  EXPECT_EQ(late.code(), Code::kTimeout);
  EXPECT_THAT(late.message(), HasSubstr("\"k\""));
  std::thread waiting([&] { EXPECT_EQ(*anna->get("k", soon()), "here"); });
  ASSERT_TRUE(ben->set("k", "here", soon()).is_ok());
  waiting.join();
}

TEST_P(VerbsTest, ADeadlineThatHasPassedIsATimeOut) {
  auto anna = join("anna");
  EXPECT_EQ(anna->set("k", "v", Deadline::after(Duration::zero())).code(), Code::kTimeout);
}

TEST_P(VerbsTest, RefusesKeysAndValuesThatAreTooLong) {
  auto anna = join("anna");
  EXPECT_EQ(anna->set("", "v", soon()).code(), Code::kInvalidArgument);
  EXPECT_EQ(anna->set(std::string(kMaxKeyBytes + 1, 'k'), "v", soon()).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(anna->set("k", std::string(kMaxValueBytes + 1, 'v'), soon()).code(),
            Code::kInvalidArgument);
  EXPECT_TRUE(anna->set(std::string(kMaxKeyBytes, 'k'), "v", soon()).is_ok());
}

TEST_P(VerbsTest, ACompareAndSwapTakesAMissingKeyForEmpty) {
  auto anna = join("anna");
  EXPECT_EQ(*anna->compare_and_swap("k", "other", "one", soon()), "");
  EXPECT_EQ(anna->get_now("k", soon()).code(), Code::kNotFound);
  EXPECT_EQ(*anna->compare_and_swap("k", "", "one", soon()), "one");
  EXPECT_EQ(*anna->compare_and_swap("k", "", "two", soon()), "one");
  EXPECT_EQ(*anna->compare_and_swap("k", "one", "two", soon()), "two");
  EXPECT_EQ(*anna->get_now("k", soon()), "two");
}

TEST_P(VerbsTest, OfManyCompareAndSwapsOneWins) {
  std::atomic<int> winners = 0;
  run_members(8, [&](KeyValueStore& store, int rank) {
    const std::string mine = std::to_string(rank);
    if (*store.compare_and_swap("k", "", mine, soon()) == mine) ++winners;
  });
  EXPECT_EQ(winners, 1);
}

TEST_P(VerbsTest, ListsThePrefixInTheOrderOfTheKeys) {
  auto anna = join("anna");
  for (const char* key : {"b/2", "b/10", "a", "b", "c"})
    ASSERT_TRUE(anna->set(key, key, soon()).is_ok());
  EXPECT_THAT(*anna->list("b/", soon()), ElementsAre(Pair("b/10", "b/10"), Pair("b/2", "b/2")));
  EXPECT_EQ(anna->list("", soon())->size(), 5U);
  EXPECT_THAT(*anna->list("none", soon()), IsEmpty());
}

TEST_P(VerbsTest, AWatchSeesEveryChangeInOrder) {
  auto anna = join("anna");
  auto ben = join("ben");
  ASSERT_TRUE(ben->set("w/before", "", soon()).is_ok());
  Seen seen;
  auto watch = anna->watch("w/", seen.watcher(), soon());
  ASSERT_TRUE(watch.is_ok()) << watch.status().to_string();
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(ben->set("w/" + std::to_string(i % 2), std::to_string(i), soon()).is_ok());
  ASSERT_TRUE(ben->set("other", "", soon()).is_ok());
  ASSERT_TRUE(ben->remove("w/1", soon()).is_ok());
  std::vector<std::string> expected;
  for (int i = 0; i < 20; ++i)
    expected.push_back("+w/" + std::to_string(i % 2) + "=" + std::to_string(i));
  expected.push_back("-w/1");
  EXPECT_EQ(seen.until("-w/1"), expected);
}

TEST_P(VerbsTest, NoWatcherRunsAfterUnwatch) {
  auto anna = join("anna");
  auto ben = join("ben");
  Seen first, second;
  const auto watch = anna->watch("w", first.watcher(), soon());
  ASSERT_TRUE(anna->watch("w", second.watcher(), soon()).is_ok());
  ASSERT_TRUE(ben->set("w", "1", soon()).is_ok());
  first.until("+w=1");
  ASSERT_TRUE(anna->unwatch(*watch, soon()).is_ok());
  ASSERT_TRUE(ben->set("w", "2", soon()).is_ok());
  second.until("+w=2");
  EXPECT_THAT(first.until("+w=1"), ElementsAre("+w=1"));
  EXPECT_EQ(anna->unwatch(*watch, soon()).code(), Code::kNotFound);
}

TEST_P(VerbsTest, AWatcherMayCallTheStoreAndEndItsOwnWatch) {
  auto anna = join("anna");
  std::atomic<std::uint64_t> watch = 0;
  auto id = anna->watch(
      "w",
      [&](const StoreChange& change) {
        while (watch == 0) std::this_thread::yield();
        EXPECT_TRUE(anna->unwatch(watch, soon()).is_ok());
        EXPECT_TRUE(anna->set("answer", change.value, soon()).is_ok());
      },
      soon());
  ASSERT_TRUE(id.is_ok());
  watch = *id;
  ASSERT_TRUE(anna->set("w", "once", soon()).is_ok());
  EXPECT_EQ(*anna->get("answer", soon()), "once");
  ASSERT_TRUE(anna->set("w", "twice", soon()).is_ok());
  EXPECT_EQ(*anna->get("answer", soon()), "once");
}

TEST_P(VerbsTest, KeysUnderALeaseGoWithIt) {
  auto anna = join("anna");
  auto ben = join("ben");
  Seen seen;
  ASSERT_TRUE(anna->watch("k/", seen.watcher(), soon()).is_ok());
  ASSERT_TRUE(ben->set("k/1", "", soon(), KeyLife::kLease).is_ok());
  ASSERT_TRUE(ben->set("k/2", "", soon()).is_ok());
  ASSERT_TRUE(ben->compare_and_swap("k/3", "", "v", soon(), KeyLife::kLease).is_ok());
  ben.reset();
  seen.until("-k/3");
  EXPECT_THAT(*anna->list("k/", soon()), ElementsAre(Pair("k/2", "")));
}

TEST_P(VerbsTest, APlainSetTakesTheKeyOutOfTheLeaseAndASwapDoesNot) {
  auto anna = join("anna");
  auto ben = join("ben");
  ASSERT_TRUE(ben->set("k/set", "ben", soon(), KeyLife::kLease).is_ok());
  ASSERT_TRUE(ben->set("k/swap", "ben", soon(), KeyLife::kLease).is_ok());
  ASSERT_TRUE(ben->set("k/taken", "ben", soon(), KeyLife::kLease).is_ok());
  ASSERT_TRUE(anna->set("k/set", "anna", soon()).is_ok());
  EXPECT_EQ(*anna->compare_and_swap("k/swap", "ben", "anna", soon()), "anna");
  EXPECT_EQ(*anna->compare_and_swap("k/taken", "ben", "anna", soon(), KeyLife::kLease), "anna");
  Seen seen;
  ASSERT_TRUE(anna->watch("k/", seen.watcher(), soon()).is_ok());
  ben->end();
  seen.until("-k/swap");
  EXPECT_THAT(*anna->list("k/", soon()),
              ElementsAre(Pair("k/set", "anna"), Pair("k/taken", "anna")));
}

TEST_P(VerbsTest, TheEndOfALeaseEndsItsCallsAndItsWatchers) {
  auto anna = join("anna");
  auto ben = join("ben");
  EXPECT_NE(anna->lease(), 0U);
  EXPECT_NE(anna->lease(), ben->lease());
  EXPECT_EQ(anna->member(), "anna");
  std::atomic<bool> has_ended = false;
  ASSERT_TRUE(anna->watch(
                      "", [&](const StoreChange&) { EXPECT_FALSE(has_ended); }, soon())
                  .is_ok());
  std::thread waiting([&] { EXPECT_EQ(anna->get("never", soon()).code(), Code::kStoreLost); });
  anna->end();
  has_ended = true;
  waiting.join();
  EXPECT_TRUE(ben->set("k", "v", soon()).is_ok());
  EXPECT_EQ(anna->set("k", "v", soon()).code(), Code::kStoreLost);
  EXPECT_EQ(anna->list("", soon()).code(), Code::kStoreLost);
  EXPECT_EQ(anna->watch(
                    "", [](const StoreChange&) {}, soon())
                .code(),
            Code::kStoreLost);
}

TEST_P(VerbsTest, TheEndOfTheStoreEndsEveryLease) {
  if (outlives_the_store()) GTEST_SKIP() << "does not apply: it waits for the next one";
  auto anna = join("anna");
  std::thread waiting([&] { EXPECT_EQ(anna->get("never", soon()).code(), Code::kStoreLost); });
  store_.reset();
  waiting.join();
  EXPECT_EQ(anna->set("k", "v", soon()).code(), Code::kStoreLost);
}

}  // namespace
}  // namespace memspan::contract
