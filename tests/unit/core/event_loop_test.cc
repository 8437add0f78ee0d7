// SPDX-License-Identifier: Apache-2.0
#include "net/event_loop.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <future>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/fd.h"
#include "support/must.h"

namespace memspan {
namespace {

constexpr auto kLong = std::chrono::seconds(60);

std::shared_ptr<EventLoop> start_loop() {
  return must(EventLoop::start("a test's loop"));
}

// Returns when the loop has done all that was there before.
void pass_through(EventLoop& loop) {
  std::promise<void> done;
  loop.call_soon([&] { done.set_value(); });
  ASSERT_EQ(done.get_future().wait_for(kLong), std::future_status::ready);
}

class Pipe {
 public:
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    out.reset(ends[0]);
    in.reset(ends[1]);
  }
  void write_byte() const { EXPECT_EQ(write(in.get(), "x", 1), 1); }
  void read_byte() const {
    char byte = 0;
    EXPECT_EQ(read(out.get(), &byte, 1), 1);
  }
  Fd out;
  Fd in;
};

TEST(EventLoopTest, ACallThatThrowsIsReportedAndTheOthersRun) {
  std::vector<std::string> seen;
  auto loop = must(EventLoop::start(
      "a test's loop", [&](const std::exception& error) { seen.emplace_back(error.what()); }));
  const Pipe pipe;
  pipe.write_byte();
  loop->call_soon([&] { seen.emplace_back("first"); });
  loop->call_soon([]() { throw std::bad_alloc(); });
  loop->call_soon([&] { seen.emplace_back("second"); });
  pass_through(*loop);
  const auto token = must(loop->watch(pipe.out.get(), EPOLLIN, [&](std::uint32_t) {
    pipe.read_byte();
    throw std::runtime_error("no reason");
  }));
  pass_through(*loop);
  loop->cancel(token);  // does not wait for the call that failed
  pass_through(*loop);
  EXPECT_EQ(seen,
            (std::vector<std::string>{"first", std::bad_alloc().what(), "second", "no reason"}));
}

TEST(EventLoopTest, ARunOfItsOwnerCallsWhatIsReady) {
  auto loop = must(EventLoop::without_thread());
  const auto at_once = [] { return Deadline::after(Duration::zero()); };
  const Pipe pipe;
  int calls = 0;
  const auto token = must(loop->watch(pipe.out.get(), 0, [&](std::uint32_t) { ++calls; }));
  pipe.write_byte();
  EXPECT_FALSE(loop->run_once(at_once()));
  loop->change(token, EPOLLIN);
  EXPECT_TRUE(loop->run_once(at_once()));
  loop->change(token, 0);
  EXPECT_FALSE(loop->run_once(at_once()));
  loop->call_soon([&] { ++calls; });
  EXPECT_TRUE(loop->run_once(Deadline::never()));
  EXPECT_EQ(calls, 2);
  loop->cancel(token);
}

TEST(EventLoopTest, CallsBackWhenADescriptorIsReadyAndAgainWhileItIs) {
  auto loop = start_loop();
  const Pipe pipe;
  std::promise<void> third;
  int calls = 0;
  pipe.write_byte();
  const auto token = loop->watch(pipe.out.get(), EPOLLIN, [&](std::uint32_t events) {
    EXPECT_TRUE(loop->is_this_thread());
    EXPECT_NE(events & EPOLLIN, 0u);
    if (++calls < 3) return;
    pipe.read_byte();
    third.set_value();
  });
  ASSERT_TRUE(token.is_ok()) << token.status().to_string();
  ASSERT_EQ(third.get_future().wait_for(kLong), std::future_status::ready);
  loop->cancel(*token);
  EXPECT_FALSE(loop->is_this_thread());
  EXPECT_EQ(calls, 3);
}

TEST(EventLoopTest, TellsThatTheOtherEndWasClosed) {
  auto loop = start_loop();
  Pipe pipe;
  std::promise<std::uint32_t> seen;
  EventLoop::Token token = 0;
  std::promise<void> is_set;
  auto known = is_set.get_future().share();
  token = loop->watch(pipe.out.get(), 0,
                      [&, known](std::uint32_t events) {
                        known.wait();
                        loop->cancel(token);  // of itself
                        seen.set_value(events);
                      })
              .value();
  is_set.set_value();
  pipe.in.reset();
  EXPECT_NE(seen.get_future().get() & EPOLLHUP, 0u);
}

TEST(EventLoopTest, RefusesADescriptorThatIsWatchedAlreadyOrCannotBe) {
  auto loop = start_loop();
  const Pipe pipe;
  const auto ignore = [](std::uint32_t) {};
  const auto token = loop->watch(pipe.out.get(), EPOLLIN, ignore);
  ASSERT_TRUE(token.is_ok());
  EXPECT_EQ(loop->watch(pipe.out.get(), EPOLLIN, ignore).code(), Code::kSystem);
  loop->cancel(*token);
  EXPECT_TRUE(loop->watch(pipe.out.get(), EPOLLIN, ignore).is_ok());
  EXPECT_EQ(loop->watch(-1, EPOLLIN, ignore).code(), Code::kSystem);
}

TEST(EventLoopTest, TimersRunInTheirOrderAndNotTooEarly) {
  auto loop = start_loop();
  std::promise<void> done;
  std::vector<int> order;
  const auto begin = Clock::now();
  loop->call_at(begin + std::chrono::milliseconds(20), [&] {
    order.push_back(3);
    EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(20));
    done.set_value();
  });
  loop->call_at(begin + std::chrono::milliseconds(10), [&] { order.push_back(2); });
  loop->call_soon([&] { order.push_back(1); });
  ASSERT_EQ(done.get_future().wait_for(kLong), std::future_status::ready);
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST(EventLoopTest, NothingRunsAfterItWasCancelled) {
  auto loop = start_loop();
  const Pipe pipe;
  const auto never = loop->call_at(Clock::now() + kLong, [] { ADD_FAILURE(); });
  const auto token = loop->watch(pipe.out.get(), EPOLLIN, [](std::uint32_t) { ADD_FAILURE(); });
  loop->cancel(*token);
  loop->cancel(never);
  loop->cancel(0);
  pipe.write_byte();
  pass_through(*loop);
}

TEST(EventLoopTest, CancellingWaitsForTheCallThatRuns) {
  auto loop = start_loop();
  std::promise<void> runs;
  std::promise<void> may_end;
  std::atomic<bool> has_ended{false};
  const auto token = loop->call_soon([&] {
    runs.set_value();
    may_end.get_future().wait();
    has_ended = true;
  });
  runs.get_future().wait();
  std::thread canceller([&] {
    loop->cancel(token);
    EXPECT_TRUE(has_ended);
  });
  may_end.set_value();
  canceller.join();
}

TEST(EventLoopTest, WhatACallbackHoldsIsReleasedWhenItIsOverOrCancelled) {
  auto loop = start_loop();
  const auto held = std::make_shared<int>(0);
  const auto token = loop->call_at(Clock::now() + kLong, [held] {});
  loop->call_soon([held] {});
  pass_through(*loop);
  loop->cancel(token);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(EventLoopTest, MayEndInACallOfItsOwn) {
  auto loop = start_loop();
  const auto done = std::make_shared<std::promise<void>>();
  auto ended = done->get_future();
  auto* raw = loop.get();
  raw->call_soon([done, loop = std::move(loop)]() mutable {
    loop.reset();
    done->set_value();
  });
  EXPECT_EQ(ended.wait_for(kLong), std::future_status::ready);
}

TEST(EventLoopTest, TheProcessHasOneAsLongAsSomebodyUsesIt) {
  auto first = EventLoop::process_singleton().value();
  std::weak_ptr<EventLoop> watched = first;
  EXPECT_EQ(EventLoop::process_singleton().value(), first);
  first.reset();
  EXPECT_TRUE(watched.expired());
  first = EventLoop::process_singleton().value();
  pass_through(*first);
}

// QEMU and the thread sanitizer cannot start a thread in a child of fork.
#if !defined(MEMSPAN_TEST_IS_EMULATED) && !defined(__SANITIZE_THREAD__)
TEST(EventLoopTest, AChildOfForkGetsALoopOfItsOwnAndLeavesTheParentsAlone) {
  auto loop = EventLoop::process_singleton().value();
  const Pipe pipe;
  std::promise<void> seen;
  const auto token = loop->watch(pipe.out.get(), EPOLLIN, [&](std::uint32_t) {
    pipe.read_byte();
    seen.set_value();
  });
  ASSERT_TRUE(token.is_ok());
  const pid_t child = fork();
  if (child == 0) {
    loop->cancel(*token);  // or the parent would not be called any more
    const bool is_refused =
        loop->watch(pipe.in.get(), EPOLLOUT, [](std::uint32_t) {}).code() == Code::kForked;
    auto own = EventLoop::process_singleton().value();
    std::promise<void> done;
    own->call_soon([&] { done.set_value(); });
    const bool is_served = done.get_future().wait_for(kLong) == std::future_status::ready;
    const bool is_another = own != loop;
    loop.reset();
    own.reset();
    _exit(is_refused && is_served && is_another ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  pipe.write_byte();
  EXPECT_EQ(seen.get_future().wait_for(kLong), std::future_status::ready);
  loop->cancel(*token);
}
#endif

}  // namespace
}  // namespace memspan
