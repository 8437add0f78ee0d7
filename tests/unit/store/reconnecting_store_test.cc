// SPDX-License-Identifier: Apache-2.0
#include "store/reconnecting_store.h"

#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "support/memory_store.h"
#include "support/must.h"

namespace memspan {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Deadline soon() {
  return Deadline::after(std::chrono::seconds(60));
}
Deadline brief() {
  return Deadline::after(std::chrono::milliseconds(30));
}

// A store that can be killed, with all that it knew, and started again. Thread-safe.
class Place {
 public:
  std::unique_ptr<KeyValueStore> join(const std::string& member) {
    const std::lock_guard lock(mutex_);
    return store_->join(member);
  }
  Result<std::unique_ptr<KeyValueStore>> attempt() {
    const std::lock_guard lock(mutex_);
    attempts_.push_back(Clock::now());
    changed_.notify_all();
    if (store_ == nullptr) return Status(Code::kUnavailable, "nobody listens");
    return store_->join("anna");
  }
  void kill() {
    const std::lock_guard lock(mutex_);
    store_.reset();
  }
  void start() {
    const std::lock_guard lock(mutex_);
    store_ = std::make_unique<MemoryStore>();
  }
  // When each attempt began, once there are so many. The failures of those before the last are
  // known then.
  std::vector<Clock::time_point> await_attempts(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(
        changed_.wait_until(lock, soon().when(), [&] { return attempts_.size() >= count; }));
    return attempts_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<MemoryStore> store_ = std::make_unique<MemoryStore>();
  std::vector<Clock::time_point> attempts_;
};

// What happens, in order, for a thread that waits for it.
class Events {
 public:
  void add(const std::string& event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
    changed_.notify_all();
  }
  std::vector<std::string> await(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_until(lock, soon().when(), [&] { return events_.size() >= count; }))
        << testing::PrintToString(events_);
    return events_;
  }
  StoreWatcher watcher() {
    return [this](const StoreChange& change) { add(change.key + "=" + change.value); };
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> events_;
};

std::unique_ptr<ReconnectingStore> reconnect_to(Place& place, Duration settling = {}) {
  return must(ReconnectingStore::start(place.join("anna"),
                                       {.connect = [&place](Deadline) { return place.attempt(); },
                                        .where = "tcp://here:1",
                                        .first_pause = std::chrono::milliseconds(4),
                                        .longest_pause = std::chrono::milliseconds(16),
                                        .settling = settling}));
}

TEST(ReconnectingStoreTest, CallsWaitForTheReturnOfTheStore) {
  Place place;
  auto store = reconnect_to(place);
  const std::uint64_t lease = store->lease();
  ASSERT_TRUE(store->set("k", "before", soon()).is_ok());
  place.kill();
  place.await_attempts(2);
  std::thread waiting([&] { EXPECT_TRUE(store->set("k", "after", soon()).is_ok()); });
  place.start();
  waiting.join();
  EXPECT_EQ(*store->get_now("k", soon()), "after");
  EXPECT_EQ(*place.join("ben")->get_now("k", soon()), "after");
  EXPECT_EQ(store->lease(), lease);
  EXPECT_EQ(store->member(), "anna");
  EXPECT_TRUE(store->state().is_ok());
}

TEST(ReconnectingStoreTest, AReadThatTheLossInterruptsIsDoneAgain) {
  Place place;
  auto store = reconnect_to(place);
  std::thread waiting([&] { EXPECT_EQ(*store->get("k", soon()), "new"); });
  place.kill();
  place.await_attempts(2);
  place.start();
  ASSERT_TRUE(place.join("ben")->set("k", "new", soon()).is_ok());
  waiting.join();
}

TEST(ReconnectingStoreTest, ACallInVainSaysWhichStoreSinceWhenAndWhy) {
  Place place;
  auto store = reconnect_to(place);
  place.kill();
  place.await_attempts(2);
  const auto says_all = AllOf(HasSubstr("tcp://here:1"), HasSubstr("was lost "),
                              HasSubstr("attempts to connect failed: nobody listens"),
                              HasSubstr("the store has ended"));
  for (const Deadline& deadline : {brief(), Deadline::after(Duration::zero())}) {
    const Status late = store->get_now("k", deadline).status();
    EXPECT_EQ(late.code(), Code::kStoreLost);
    EXPECT_THAT(late.message(), says_all);
  }
  EXPECT_EQ(store->compare_and_swap("k", "", "v", brief()).code(), Code::kStoreLost);
  EXPECT_EQ(store
                ->watch(
                    "k", [](const StoreChange&) {}, brief())
                .code(),
            Code::kStoreLost);
  EXPECT_THAT(store->state().message(), says_all);
}

TEST(ReconnectingStoreTest, AttemptsBecomeRarer) {
  Place place;
  auto store = reconnect_to(place);
  place.kill();
  const auto attempts = place.await_attempts(8);
  const auto pause = [&](std::size_t n) { return to_seconds(attempts[n + 1] - attempts[n]); };
  // The first comes at once; then 4, 8, 16, 16 ... ms, a quarter more or less.
  for (const auto& [n, least_ms] : {std::pair{0, 4}, {1, 8}, {2, 16}, {3, 16}, {6, 16}})
    EXPECT_GE(pause(static_cast<std::size_t>(n)), 0.75e-3 * least_ms) << n;
}

TEST(ReconnectingStoreTest, WatchesGoOnInTheNextSession) {
  Place place;
  auto store = reconnect_to(place);
  Events seen, unseen;
  ASSERT_TRUE(store->watch("k/", seen.watcher(), soon()).is_ok());
  const auto over = store->watch("k/", unseen.watcher(), soon());
  const auto over_while_away = store->watch("k/", unseen.watcher(), soon());
  EXPECT_TRUE(store->unwatch(*over, soon()).is_ok());
  for (const char* life : {"1", "2", "3"}) {
    place.kill();
    place.await_attempts(1);
    if (*life == '1') {
      EXPECT_TRUE(store->unwatch(*over_while_away, brief()).is_ok());
    }
    place.start();
    EXPECT_EQ(store->get_now("none", soon()).code(), Code::kNotFound);  // it is back
    ASSERT_TRUE(place.join("ben")->set(std::string("k/") + life, life, soon()).is_ok());
    seen.await(static_cast<std::size_t>(*life - '0'));
  }
  EXPECT_THAT(seen.await(3), ElementsAre("k/1=1", "k/2=2", "k/3=3"));
  EXPECT_THAT(unseen.await(0), ElementsAre());
  EXPECT_EQ(store->unwatch(*over, soon()).code(), Code::kNotFound);
}

TEST(ReconnectingStoreTest, WhatIsRenewedIsThereBeforeOthersCalls) {
  Place place;
  auto store = reconnect_to(place, std::chrono::milliseconds(1));
  Events events;
  const auto add = [&](const std::string& key) {
    return store->add_renewal({.renew =
                                   [&events, key](KeyValueStore& session, Deadline deadline) {
                                     events.add("renews " + key);
                                     return session.set(key, "", deadline, KeyLife::kLease);
                                   },
                               .settle = [&events, key] { events.add("settles " + key); }});
  };
  add("a");
  const auto removed = add("b");
  add("c");
  store->remove_renewal(removed);
  place.kill();
  place.await_attempts(2);
  std::thread waiting([&] { EXPECT_EQ(store->list("", soon())->size(), 2U); });
  place.start();
  waiting.join();
  EXPECT_THAT(events.await(4), ElementsAre("renews a", "renews c", "settles a", "settles c"));
  store.reset();
  EXPECT_THAT(*place.join("ben")->list("", soon()), ElementsAre());  // they were under the lease
}

TEST(ReconnectingStoreTest, ASessionInWhichARenewalTimesOutIsGivenUp) {
  Place place;
  auto store = reconnect_to(place);
  std::atomic<int> calls{0};
  store->add_renewal({.renew = [&](KeyValueStore&, Deadline) {
    return ++calls == 1 ? Status(Code::kTimeout, "no answer") : Status::ok();
  }});
  place.kill();
  place.await_attempts(2);
  place.start();
  EXPECT_EQ(store->get_now("k", soon()).code(), Code::kNotFound);
  EXPECT_EQ(calls, 2);
}

TEST(ReconnectingStoreTest, AWatcherThatWaitsForTheStoreGoesOnAtItsReturn) {
  Place place;
  auto store = reconnect_to(place);
  Events events;
  ASSERT_TRUE(store
                  ->watch(
                      "w",
                      [&](const StoreChange& change) {
                        events.add(change.value);
                        place.await_attempts(2);
                        EXPECT_TRUE(store->set("answer", change.value, soon()).is_ok());
                        events.add("answers " + change.value);
                      },
                      soon())
                  .is_ok());
  ASSERT_TRUE(store->set("w", "1", soon()).is_ok());
  events.await(1);
  place.kill();
  place.await_attempts(2);
  place.start();
  EXPECT_EQ(*store->get("answer", soon()), "1");
  ASSERT_TRUE(store->set("w", "2", soon()).is_ok());
  EXPECT_THAT(events.await(4), ElementsAre("1", "answers 1", "2", "answers 2"));
}

TEST(ReconnectingStoreTest, TheEndEndsCallsThatWait) {
  Place place;
  auto store = reconnect_to(place);
  place.kill();
  place.await_attempts(1);
  std::thread waiting([&] { EXPECT_EQ(store->get("k", soon()).code(), Code::kStoreLost); });
  store->end();
  waiting.join();
  place.start();
  EXPECT_EQ(store->set("k", "v", soon()).code(), Code::kStoreLost);
  EXPECT_THAT(store->state().message(), HasSubstr("ended its lease"));
}

}  // namespace
}  // namespace memspan
