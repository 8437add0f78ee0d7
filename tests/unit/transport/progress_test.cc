// SPDX-License-Identifier: Apache-2.0
#include "transport/message/progress.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <string>
#include <thread>
#include <vector>

#include "transport/message/message_transport.h"
#include "transport/message/socket/socket_carrier.h"

namespace memspan {
namespace {

// Rung by the test; notes which thread was told.
class Bell final : public PollClient {
 public:
  static std::shared_ptr<Bell> hang(Progress& progress) {
    auto bell = std::make_shared<Bell>();
    bell->progress_ = &progress;
    bell->event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    bell->id_ = *progress.add(bell->event_.get(), bell);
    progress.watch(bell->id_, EPOLLIN);
    return bell;
  }
  void ring() { EXPECT_EQ(::eventfd_write(event_.get(), 1), 0); }
  bool can_be_asked() const override { return true; }
  void on_ready(std::uint32_t) override {
    eventfd_t rings = 0;
    if (::eventfd_read(event_.get(), &rings) == 0) {
      teller_.store(std::this_thread::get_id());
      calls_.fetch_add(1);
    }
    progress_->watch(id_, EPOLLIN);
  }
  int calls() const { return calls_.load(); }
  std::thread::id teller() const { return teller_.load(); }

 private:
  Progress* progress_ = nullptr;
  Fd event_;
  Progress::Id id_ = 0;
  std::atomic<int> calls_{0};
  std::atomic<std::thread::id> teller_;
};

bool comes(const Bell& bell, int calls, auto meanwhile) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(20));
  while (bell.calls() < calls && !deadline.has_passed()) meanwhile();
  return bell.calls() >= calls;
}

TEST(ProgressTest, TheThreadServesWhoeverDoesNotPoll) {
  const std::unique_ptr<Progress> progress = Progress::start().value();
  const auto bell = Bell::hang(*progress);
  for (int call = 1; call <= 100; ++call) {
    bell->ring();
    ASSERT_TRUE(comes(*bell, call, std::this_thread::yield));
    EXPECT_NE(bell->teller(), std::this_thread::get_id());
  }
}

// Counts the times that its timer came.
class Sleeper final : public PollClient {
 public:
  void on_ready(std::uint32_t) override { calls.fetch_add(1); }
  std::atomic<int> calls{0};
};

TEST(ProgressTest, ATimerComesAlthoughAnotherThreadPolls) {
  const std::unique_ptr<Progress> progress = Progress::start().value();
  const auto sleeper = std::make_shared<Sleeper>();
  const Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const Progress::Id id = *progress->add(event.get(), sleeper);
  for (int call = 1; call <= 2000; ++call) {
    progress->wake_at(id, Clock::now());
    const Deadline deadline = Deadline::after(std::chrono::seconds(20));
    while (sleeper->calls.load() < call && !deadline.has_passed()) progress->poll();
    ASSERT_EQ(sleeper->calls.load(), call);
  }
  progress->remove(id);
}

// Taken over by a turn.
std::shared_ptr<Bell> hang_known(Progress& progress) {
  auto bell = Bell::hang(progress);
  bell->ring();
  EXPECT_TRUE(comes(*bell, 1, std::this_thread::yield));
  return bell;
}

TEST(ProgressTest, WhileAThreadPollsTheOtherIsNotWoken) {
  const std::unique_ptr<Progress> progress = Progress::start().value();
  const auto bell = hang_known(*progress);
  for (int call = 2; call <= 1000; ++call) {
    progress->begin_polling();
    bell->ring();
    // Time for the other to come first, if it were woken.
    std::this_thread::yield();
    ASSERT_TRUE(comes(*bell, call, [&] { progress->poll(); }));
    EXPECT_EQ(bell->teller(), std::this_thread::get_id()) << "call " << call;
    progress->end_polling();
  }
}

// Turns one soon after the other.
void take_turns(Progress& progress) {
  for (int turn = 0; turn < 10; ++turn) {
    progress.begin_polling();
    progress.poll();
    progress.end_polling();
  }
}

TEST(ProgressTest, BetweenTurnsThatGoOnTheOtherIsNotWoken) {
  const std::unique_ptr<Progress> progress = Progress::start().value();
  const auto bell = hang_known(*progress);
  int by_this_thread = 0;
  for (int call = 2; call <= 100; ++call) {
    take_turns(*progress);
    bell->ring();
    progress->begin_polling();
    ASSERT_TRUE(comes(*bell, call, [&] { progress->poll(); }));
    if (bell->teller() == std::this_thread::get_id()) ++by_this_thread;
    progress->end_polling();
  }
  EXPECT_GT(by_this_thread, 50) << "but when this one was not running for a while";
}

TEST(ProgressTest, WhatComesAfterTheLastOfManyTurnsIsServed) {
  const std::unique_ptr<Progress> progress = Progress::start().value();
  const auto bell = hang_known(*progress);
  for (int call = 2; call <= 100; ++call) {
    take_turns(*progress);
    bell->ring();
    ASSERT_TRUE(comes(*bell, call, std::this_thread::yield));
    EXPECT_NE(bell->teller(), std::this_thread::get_id());
  }
}

TEST(ProgressTest, TurnsThatGoOnTakeOverWhoeverSpeaksThen) {
  const std::unique_ptr<Progress> progress = Progress::start().value();
  constexpr int kBells = 12;  // more than are taken over at a time
  std::vector<std::shared_ptr<Bell>> bells;
  for (int i = 0; i < kBells; ++i) bells.push_back(Bell::hang(*progress));
  for (int call = 1; call <= 20; ++call)
    for (const auto& bell : bells) {
      take_turns(*progress);
      bell->ring();
      progress->begin_polling();
      ASSERT_TRUE(comes(*bell, call, [&] { progress->poll(); }));
      progress->end_polling();
    }
}

TEST(ProgressTest, WhoWaitsForOnePeerGivesBackWhatWasKept) {
  const std::unique_ptr<Progress> progress = Progress::start().value();
  const auto bell = hang_known(*progress);
  for (int call = 2; call <= 100; ++call) {
    take_turns(*progress);
    progress->give_back();
    bell->ring();
    ASSERT_TRUE(comes(*bell, call, std::this_thread::yield));
  }
}

TEST(ProgressTest, WhatCameDuringATurnIsServedAtItsEnd) {
  const std::unique_ptr<Progress> progress = Progress::start().value();
  const auto bell = hang_known(*progress);
  for (int call = 2; call <= 100; ++call) {
    progress->begin_polling();
    progress->begin_polling();
    bell->ring();
    progress->end_polling();
    EXPECT_EQ(bell->calls(), call - 1) << "one thread still polls";
    progress->end_polling();
    ASSERT_TRUE(comes(*bell, call, std::this_thread::yield));
  }
}

TEST(ProgressTest, OneThatWasNotTakenOverIsServedDuringATurn) {
  const std::unique_ptr<Progress> progress = Progress::start().value();
  const auto known = hang_known(*progress);
  progress->begin_polling();
  const auto fresh = Bell::hang(*progress);
  fresh->ring();
  EXPECT_TRUE(comes(*fresh, 1, std::this_thread::yield)) << "by the progress thread";
  progress->end_polling();
}

// A process of two, in a turn: it has heard of the other before.
class Waiter {
 public:
  explicit Waiter(int self) : memory_(kBytes) {
    MessageOptions options;
    options.carrier = make_socket_carrier({SocketOptions::Family::kUnix, ""});
    options.self = self;
    options.name = std::to_string(self);
    options.silence_limit = std::chrono::seconds(5);
    transport_ = make_message_transport(std::move(options)).value();
    region_ = transport_->expose({.base = memory_.data(), .bytes = memory_.size()}).value();
  }
  void meet(const Waiter& other) {
    link_ = transport_->connect({1, "the other", other.transport_->address()}).value();
    there_ = other.region_->describe();
    EXPECT_TRUE(link_->attach(there_).is_ok());
    EXPECT_TRUE(link_->put(context_, {there_, 0}, memory_.data(), 8).is_ok());
    EXPECT_TRUE(link_->quiet(context_).is_ok());
  }
  // What a wait's condition may do.
  Status put_and_get(int times) {
    const ProgressTurn turn(transport_.get());
    for (int i = 0; i < times; ++i) {
      MEMSPAN_PASS(link_->put(context_, {there_, 0}, memory_.data(), kBytes));
      std::uint64_t word = 0;
      MEMSPAN_PASS(link_->get(context_, &word, {there_, 0}, sizeof word));
    }
    return link_->quiet(context_);
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{8} << 20;
  std::vector<std::byte> memory_;
  std::unique_ptr<MessageTransport> transport_;
  std::unique_ptr<ExposedRegion> region_;
  RemoteRegion there_;
  std::unique_ptr<Link> link_;
  OperationContext context_;
};

TEST(ProgressTurnTest, TwoThatSendAndAskInTheirTurnsDoNotWaitForEachOther) {
  Waiter one(0);
  Waiter other(1);
  one.meet(other);
  other.meet(one);
  std::thread there([&] { EXPECT_TRUE(other.put_and_get(20).is_ok()); });
  EXPECT_TRUE(one.put_and_get(20).is_ok());
  there.join();
}

}  // namespace
}  // namespace memspan
