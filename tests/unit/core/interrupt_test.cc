// SPDX-License-Identifier: Apache-2.0
#include "core/interrupt.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace memspan {
namespace {

int calls = 0;
int calls_until_interrupted = 0;

int count_call() {
  return ++calls >= calls_until_interrupted ? 1 : 0;
}

// With a handler that interrupts at its call of that number.
class InterruptTest : public testing::Test {
 protected:
  void set_handler(int call) {
    calls = 0;
    calls_until_interrupted = call;
    set_thread_interrupt_handler(count_call);
  }
  void TearDown() override { set_thread_interrupt_handler(nullptr); }

  Mutex mutex_;
  ConditionVariable changed_;
};

TEST_F(InterruptTest, EndsAWaitWithinATenthOfASecond) {
  set_handler(1);
  const auto begin = Clock::now();
  MutexLock lock(mutex_);
  EXPECT_FALSE(wait_interruptibly(changed_, mutex_, Deadline::never()));
  EXPECT_LT(Clock::now() - begin, std::chrono::milliseconds(100));
  EXPECT_EQ(end_of_wait("late").code(), Code::kSystem);
  EXPECT_EQ(calls, 1);
}

TEST_F(InterruptTest, GoesOnWhileTheHandlerSaysSo) {
  set_handler(3);
  MutexLock lock(mutex_);
  EXPECT_TRUE(wait_interruptibly(changed_, mutex_, Deadline::never()));
  EXPECT_TRUE(wait_interruptibly(changed_, mutex_, Deadline::never()));
  EXPECT_FALSE(wait_interruptibly(changed_, mutex_, Deadline::never()));
}

TEST_F(InterruptTest, EndsAllFurtherWaitsUntilAHandlerIsSet) {
  set_handler(1);
  MutexLock lock(mutex_);
  EXPECT_FALSE(wait_interruptibly(changed_, mutex_, Deadline::never()));
  EXPECT_TRUE(is_interrupted());
  EXPECT_FALSE(wait_interruptibly(changed_, mutex_, Deadline::never()));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(set_thread_interrupt_handler(nullptr), count_call);
  EXPECT_FALSE(is_interrupted());
}

TEST_F(InterruptTest, CallsTheHandlerWithoutTheMutex) {
  static Mutex* held = nullptr;
  held = &mutex_;
  set_thread_interrupt_handler([] {
    std::thread([] { MutexLock lock(*held); }).join();
    return 1;
  });
  MutexLock lock(mutex_);
  EXPECT_FALSE(wait_interruptibly(changed_, mutex_, Deadline::never()));
}

TEST_F(InterruptTest, LeavesOtherThreadsAndShortWaitsAlone) {
  set_handler(1);
  std::thread([] { EXPECT_FALSE(is_interrupted()); }).join();
  EXPECT_FALSE(is_interrupted());
  EXPECT_EQ(calls, 0);
}

TEST_F(InterruptTest, TellsATimeOutFromAnInterruption) {
  set_handler(100);
  MutexLock lock(mutex_);
  EXPECT_FALSE(wait_interruptibly(changed_, mutex_, Deadline::after(std::chrono::milliseconds(1))));
  const Status status = end_of_wait("late");
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_EQ(status.message(), "late");
}

TEST_F(InterruptTest, AWaitEndsWithWhatAnotherThreadDestroys) {
  std::atomic<bool> is_over{false};
  const EndsWith ends(is_over, "it is destroyed");
  EXPECT_TRUE(is_interruptible());
  EXPECT_FALSE(is_interrupted());
  std::thread other([&] { is_over.store(true); });
  {
    MutexLock lock(mutex_);
    while (wait_interruptibly(changed_, mutex_, Deadline::never())) continue;
  }
  other.join();
  EXPECT_EQ(end_of_wait("late").message(), "it is destroyed");
}

TEST_F(InterruptTest, AHandlerAndAnInnerObjectLeaveTheOuterOne) {
  std::atomic<bool> outer{false};
  std::atomic<bool> inner{true};
  const EndsWith ends(outer, "the outer one");
  set_handler(1000);
  set_thread_interrupt_handler(nullptr);
  {
    const EndsWith also(inner, "the inner one");
    EXPECT_TRUE(is_interrupted());
    EXPECT_EQ(interruption().message(), "the inner one");
  }
  EXPECT_FALSE(is_interrupted());
  outer.store(true);
  EXPECT_TRUE(is_interrupted());
  EXPECT_EQ(interruption().message(), "the outer one");
}

}  // namespace
}  // namespace memspan
