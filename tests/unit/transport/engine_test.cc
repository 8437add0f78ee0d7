// SPDX-License-Identifier: Apache-2.0
#include "transport/message/engine.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <string>
#include <thread>
#include <vector>

#include "transport/message/message_transport.h"
#include "transport/message/socket/socket_carrier.h"

namespace memspan {
namespace {

constexpr auto kPromise = std::chrono::seconds(20);

// Rung by the test; notes which thread was told.
class Bell final : public Source {
 public:
  static std::shared_ptr<Bell> hang(Engine& engine) {
    auto bell = std::make_shared<Bell>();
    bell->event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const Turn turn(engine);
    bell->id_ = *engine.add(bell->event_.get(), bell);
    engine.watch(bell->id_, EPOLLIN);
    return bell;
  }
  void ring() { EXPECT_EQ(::eventfd_write(event_.get(), 1), 0); }
  void on_ready(std::uint32_t) override { look(); }
  bool look() override {
    eventfd_t rings = 0;
    if (::eventfd_read(event_.get(), &rings) != 0) return false;
    teller_.store(std::this_thread::get_id());
    calls_.fetch_add(1);
    return true;
  }
  Engine::Id id() const { return id_; }
  int calls() const { return calls_.load(); }
  std::thread::id teller() const { return teller_.load(); }

 private:
  Fd event_;
  Engine::Id id_ = 0;
  std::atomic<int> calls_{0};
  std::atomic<std::thread::id> teller_;
};

bool comes(const Bell& bell, int calls, auto meanwhile) {
  const Deadline deadline = Deadline::after(kPromise);
  while (bell.calls() < calls && !deadline.has_passed()) meanwhile();
  return bell.calls() >= calls;
}

// Waits in the engine, as a call of the program does.
Status wait_for(Engine& engine, const Bell& bell, int calls,
                const Deadline& deadline = Deadline::after(kPromise)) {
  const Turn turn(engine);
  return engine.wait([&] { return bell.calls() >= calls; }, deadline, bell.id());
}

TEST(EngineTest, ItsThreadServesWhileNoThreadWaits) {
  const std::unique_ptr<Engine> engine = Engine::start().value();
  const auto bell = Bell::hang(*engine);
  for (int call = 1; call <= 100; ++call) {
    bell->ring();
    ASSERT_TRUE(comes(*bell, call, std::this_thread::yield));
    EXPECT_NE(bell->teller(), std::this_thread::get_id());
  }
}

// Counts the times that its timer came.
class Sleeper final : public Source {
 public:
  void on_ready(std::uint32_t) override { calls.fetch_add(1); }
  std::atomic<int> calls{0};
};

TEST(EngineTest, ATimerComesAlthoughAnotherThreadPolls) {
  const std::unique_ptr<Engine> engine = Engine::start().value();
  const auto sleeper = std::make_shared<Sleeper>();
  const Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  Engine::Id id = 0;
  {
    const Turn turn(*engine);
    id = *engine->add(event.get(), sleeper);
  }
  for (int call = 1; call <= 2000; ++call) {
    {
      const Turn turn(*engine);
      engine->wake_at(id, Clock::now());
    }
    const Deadline deadline = Deadline::after(kPromise);
    while (sleeper->calls.load() < call && !deadline.has_passed()) engine->progress();
    ASSERT_EQ(sleeper->calls.load(), call);
  }
  const Turn turn(*engine);
  engine->remove(id);
}

// Its timer comes again each millisecond.
class Metronome final : public Source {
 public:
  explicit Metronome(Engine& engine) : engine_(engine) {}
  void on_ready(std::uint32_t) override {
    engine_.assert_turn();
    calls.fetch_add(1);
    start();
  }
  void start() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
    engine_.wake_at(id, Clock::now() + std::chrono::milliseconds(1));
  }
  Engine::Id id = 0;
  std::atomic<int> calls{0};

 private:
  Engine& engine_;
};

// As UCX over shared memory is never ready to sleep while the peer takes nothing.
TEST(EngineTest, TimersComeAlthoughAThreadWaitsThatCannotSleep) {
  const std::unique_ptr<Engine> engine = Engine::start().value();
  const auto metronome = std::make_shared<Metronome>(*engine);
  const Turn turn(*engine);
  metronome->id = *engine->add(-1, metronome);
  const Engine::Id worker = *engine->add(-1, std::make_shared<Sleeper>());
  engine->set_prepare_sleep(worker, [] {
    const Deadline busy = Deadline::after(std::chrono::milliseconds(2));
    while (!busy.has_passed()) cpu_pause();
    return false;
  });
  metronome->start();
  EXPECT_TRUE(
      engine->wait([&] { return metronome->calls.load() >= 200; }, Deadline::after(kPromise))
          .is_ok());
  EXPECT_GE(metronome->calls.load(), 200);
  engine->remove(metronome->id);
}

// Always has something, which takes a while.
class Busy final : public Source {
 public:
  void on_ready(std::uint32_t) override {
    const Deadline busy = Deadline::after(std::chrono::milliseconds(2));
    while (!busy.has_passed()) cpu_pause();
  }
};

TEST(EngineTest, TimersComeAlthoughAThreadPollsWithoutABreak) {
  const std::unique_ptr<Engine> engine = Engine::start().value();
  const auto metronome = std::make_shared<Metronome>(*engine);
  const Fd always(::eventfd(1, EFD_CLOEXEC));
  Engine::Id busy = 0;
  {
    const Turn turn(*engine);
    busy = *engine->add(always.get(), std::make_shared<Busy>());
    engine->watch(busy, EPOLLIN);
    metronome->id = *engine->add(-1, metronome);
    metronome->start();
  }
  engine->begin_progress();
  const Deadline deadline = Deadline::after(kPromise);
  while (metronome->calls.load() < 200 && !deadline.has_passed()) engine->progress();
  engine->end_progress();
  EXPECT_GE(metronome->calls.load(), 200);
  const Turn turn(*engine);
  engine->remove(metronome->id);
  engine->remove(busy);
}

TEST(EngineTest, WhileAThreadPollsTheOtherIsNotWoken) {
  const std::unique_ptr<Engine> engine = Engine::start().value();
  const auto bell = Bell::hang(*engine);
  for (int call = 1; call <= 1000; ++call) {
    engine->begin_progress();
    bell->ring();
    // Time for the other to come first, if it were woken.
    std::this_thread::yield();
    ASSERT_TRUE(comes(*bell, call, [&] { engine->progress(); }));
    EXPECT_EQ(bell->teller(), std::this_thread::get_id()) << "call " << call;
    engine->end_progress();
  }
}

TEST(EngineTest, AWaitingThreadServesItself) {
  const std::unique_ptr<Engine> engine = Engine::start().value();
  const auto bell = Bell::hang(*engine);
  const auto other = Bell::hang(*engine);
  for (int call = 1; call <= 1000; ++call) {
    std::thread ringer([&] {
      bell->ring();
      other->ring();
    });
    ASSERT_TRUE(wait_for(*engine, *bell, call).is_ok());
    ASSERT_TRUE(wait_for(*engine, *other, call).is_ok());
    ringer.join();
  }
}

TEST(EngineTest, AWaitEndsAtItsLimit) {
  const std::unique_ptr<Engine> engine = Engine::start().value();
  const auto bell = Bell::hang(*engine);
  constexpr auto kLimit = std::chrono::milliseconds(50);
  const auto begin = Clock::now();
  EXPECT_EQ(wait_for(*engine, *bell, 1, Deadline::after(kLimit)).code(), Code::kTimeout);
  EXPECT_GE(Clock::now() - begin, kLimit);
}

// One of them serves; when its own event has come, another does.
TEST(EngineTest, ThreadsThatWaitAtTheSameTimeAllEnd) {
  const std::unique_ptr<Engine> engine = Engine::start().value();
  constexpr int kThreads = 8;
  std::vector<std::shared_ptr<Bell>> bells;
  for (int i = 0; i < kThreads; ++i) bells.push_back(Bell::hang(*engine));
  for (int call = 1; call <= 50; ++call) {
    std::vector<std::thread> waiting;
    for (const auto& bell : bells)
      waiting.emplace_back([&] { EXPECT_TRUE(wait_for(*engine, *bell, call).is_ok()); });
    for (const auto& bell : bells) bell->ring();
    for (std::thread& one : waiting) one.join();
  }
}

TEST(EngineTest, AThreadGetsTheTurnFromOneThatServes) {
  const std::unique_ptr<Engine> engine = Engine::start().value();
  const auto bell = Bell::hang(*engine);
  std::thread waiting([&] { EXPECT_TRUE(wait_for(*engine, *bell, 1).is_ok()); });
  for (int i = 0; i < 1000; ++i) {
    const Turn turn(*engine);
    engine->notify();
  }
  bell->ring();
  waiting.join();
}

// Waits one soon after the other.
void take_turns(Engine& engine) {
  for (int turn = 0; turn < 10; ++turn) {
    engine.begin_progress();
    engine.progress();
    engine.end_progress();
  }
}

TEST(EngineTest, BetweenWaitsInARowTheOtherIsNotWoken) {
  const std::unique_ptr<Engine> engine = Engine::start().value();
  const auto bell = Bell::hang(*engine);
  int by_this_thread = 0;
  for (int call = 1; call <= 100; ++call) {
    take_turns(*engine);
    bell->ring();
    engine->begin_progress();
    ASSERT_TRUE(comes(*bell, call, [&] { engine->progress(); }));
    if (bell->teller() == std::this_thread::get_id()) ++by_this_thread;
    engine->end_progress();
  }
  EXPECT_GT(by_this_thread, 50) << "but when this one was not running for a while";
}

TEST(EngineTest, WhatComesAfterTheLastOfManyWaitsIsServed) {
  const std::unique_ptr<Engine> engine = Engine::start().value();
  const auto bell = Bell::hang(*engine);
  for (int call = 1; call <= 100; ++call) {
    take_turns(*engine);
    bell->ring();
    ASSERT_TRUE(comes(*bell, call, std::this_thread::yield));
    EXPECT_NE(bell->teller(), std::this_thread::get_id());
  }
}

TEST(EngineTest, WhoSleepsBetweenItsLooksIsServed) {
  const std::unique_ptr<Engine> engine = Engine::start().value();
  const auto bell = Bell::hang(*engine);
  for (int call = 1; call <= 100; ++call) {
    engine->begin_progress();
    engine->rest_progress();
    bell->ring();
    ASSERT_TRUE(comes(*bell, call, std::this_thread::yield));
    engine->end_progress();
  }
}

TEST(EngineTest, WhatCameDuringAWaitIsServedAtItsEnd) {
  const std::unique_ptr<Engine> engine = Engine::start().value();
  const auto bell = Bell::hang(*engine);
  for (int call = 1; call <= 100; ++call) {
    engine->begin_progress();
    engine->begin_progress();
    bell->ring();
    engine->end_progress();
    EXPECT_EQ(bell->calls(), call - 1) << "one thread still polls";
    engine->end_progress();
    ASSERT_TRUE(comes(*bell, call, std::this_thread::yield));
  }
}

// Asks for more calls, as one whose stream has hidden bytes.
class Again final : public Source {
 public:
  explicit Again(Engine& engine) : engine_(engine) {}
  void on_ready(std::uint32_t) override {
    engine_.assert_turn();
    if (calls.fetch_add(1) < 100) engine_.call_again(id);
  }
  Engine::Id id = 0;
  std::atomic<int> calls{0};

 private:
  Engine& engine_;
};

TEST(EngineTest, WhoAsksToBeCalledAgainIs) {
  const std::unique_ptr<Engine> engine = Engine::start().value();
  const auto again = std::make_shared<Again>(*engine);
  const Fd event(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
  {
    const Turn turn(*engine);
    again->id = *engine->add(event.get(), again);
    engine->wake_at(again->id, Clock::now());
  }
  const Deadline deadline = Deadline::after(kPromise);
  while (again->calls.load() < 101 && !deadline.has_passed()) std::this_thread::yield();
  EXPECT_EQ(again->calls.load(), 101);
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
    transport_ = MessageTransport::make(std::move(options)).value();
    region_ = transport_->expose({.base = memory_.data(), .bytes = memory_.size()}).value();
  }
  void meet(const Waiter& other) {
    link_ = transport_->connect({1, "the other", other.transport_->address()});
    there_ = other.region_->describe();
    EXPECT_TRUE(link_->put(context_, {there_, 0}, memory_.data(), 8).is_ok());
    EXPECT_TRUE(link_->quiet(context_).is_ok());
  }
  // What a wait's condition may do.
  Status put_and_get(int times) {
    const ProgressTurn turn(&transport_->engine());
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
