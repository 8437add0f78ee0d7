// SPDX-License-Identifier: Apache-2.0
#include "device/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <utility>
#include <vector>

namespace memspan {
namespace {

using testing::HasSubstr;

// Only a bug reaches it.
Deadline soon() {
  return Deadline::after(std::chrono::seconds(60));
}

// Work that waits until the gate opens, and by destruction at the latest.
class Gate {
 public:
  ~Gate() { open(); }
  void open() {
    if (!std::exchange(is_open_, true)) opener_.set_value();
  }
  Stream::Work work() {
    return [opened = opened_] {
      opened.wait();
      return Status::ok();
    };
  }

 private:
  bool is_open_ = false;
  std::promise<void> opener_;
  std::shared_future<void> opened_ = opener_.get_future().share();
};

Stream::Work failing(const char* why) {
  return [why] { return Status(Code::kUnreachable, why); };
}

TEST(StreamTest, DoesWorkInTheOrderInWhichItCame) {
  Stream stream;
  std::vector<int> done;  // by the stream's thread only; read after a synchronisation
  for (int i = 0; i < 1000; ++i)
    ASSERT_TRUE(stream
                    .submit([&done, i] {
                      done.push_back(i);
                      return Status::ok();
                    })
                    .is_ok());
  ASSERT_TRUE(stream.synchronize(soon()).is_ok());
  ASSERT_EQ(done.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(done[static_cast<std::size_t>(i)], i);
}

TEST(StreamTest, WithoutWorkThereIsNothingToWaitFor) {
  Stream stream;
  EXPECT_TRUE(stream.is_idle());
  EXPECT_TRUE(stream.synchronize(Deadline::after(Duration::zero())).is_ok());
}

TEST(StreamTest, TheCallerGoesOnAndATimeOutLeavesAllAsItWas) {
  Gate gate;
  Stream stream;
  bool is_done = false;
  ASSERT_TRUE(stream.submit(gate.work()).is_ok());
  ASSERT_TRUE(stream.submit(failing("no way")).is_ok());
  ASSERT_TRUE(stream
                  .submit([&is_done] {
                    is_done = true;
                    return Status::ok();
                  })
                  .is_ok());
  EXPECT_FALSE(stream.is_idle());
  const Status late = stream.synchronize(Deadline::after(std::chrono::milliseconds(1)));
  EXPECT_EQ(late.code(), Code::kTimeout);
  EXPECT_THAT(late.message(), HasSubstr("timeout: 3 of"));
  gate.open();
  EXPECT_EQ(stream.synchronize(soon()).code(), Code::kUnreachable);
  EXPECT_TRUE(is_done);
  EXPECT_TRUE(stream.is_idle());
}

TEST(StreamTest, TheFirstFailureIsToldOnce) {
  Stream stream;
  ASSERT_TRUE(stream.submit(failing("the first")).is_ok());
  ASSERT_TRUE(stream.submit(failing("the second")).is_ok());
  EXPECT_EQ(stream.synchronize(soon()).message(), "the first");
  EXPECT_TRUE(stream.synchronize(soon()).is_ok());
  ASSERT_TRUE(stream.submit(failing("the third")).is_ok());
  EXPECT_EQ(stream.synchronize(soon()).message(), "the third");
}

// Every work brings another one, so that there is always more to do.
TEST(StreamTest, WaitsForWhatWasThereBeforeTheCallOnly) {
  std::atomic<bool> goes_on = true;
  std::function<Status()> renewing;
  Stream stream;  // ends first: the last work may still be there
  renewing = [&] { return goes_on ? stream.submit(renewing) : Status::ok(); };
  ASSERT_TRUE(stream.submit(renewing).is_ok());
  EXPECT_TRUE(stream.synchronize(soon()).is_ok());
  EXPECT_FALSE(stream.is_idle());
  goes_on = false;
  EXPECT_TRUE(stream.synchronize(soon()).is_ok());
}

TEST(StreamTest, WorkMayGiveTheStreamMoreWorkButNotWaitForIt) {
  Stream stream;
  std::promise<Code> waited;
  std::promise<bool> more;
  ASSERT_TRUE(stream
                  .submit([&] {
                    waited.set_value(stream.synchronize(soon()).code());
                    return stream.submit([&more, &stream] {
                      more.set_value(stream.is_own_work());
                      return Status::ok();
                    });
                  })
                  .is_ok());
  EXPECT_EQ(waited.get_future().get(), Code::kInvalidArgument);
  EXPECT_TRUE(more.get_future().get());
  EXPECT_FALSE(stream.is_own_work());
}

TEST(StreamTest, ItsEndWaitsForAllWork) {
  std::atomic<int> done = 0;
  {
    Stream stream;
    for (int i = 0; i < 100; ++i)
      ASSERT_TRUE(stream
                      .submit([&done] {
                        ++done;
                        return Status::ok();
                      })
                      .is_ok());
  }
  EXPECT_EQ(done, 100);
}

TEST(StreamTest, WhatWorkHeldIsGoneWhenItIsDone) {
  Stream stream;
  auto held = std::make_shared<int>(1);
  ASSERT_TRUE(stream.submit([held] { return Status::ok(); }).is_ok());
  ASSERT_TRUE(stream.synchronize(soon()).is_ok());
  EXPECT_EQ(held.use_count(), 1);
}

TEST(StreamTest, ManyThreadsMayUseOne) {
  Stream stream;
  constexpr int kThreads = 4;
  constexpr int kEach = 200;
  int done = 0;  // by the stream's thread only
  std::vector<std::future<void>> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread)
    threads.push_back(std::async(std::launch::async, [&] {
      for (int i = 0; i < kEach; ++i) {
        EXPECT_TRUE(stream
                        .submit([&done] {
                          ++done;
                          return Status::ok();
                        })
                        .is_ok());
        if (i % 50 == 0) {
          EXPECT_TRUE(stream.synchronize(soon()).is_ok());
        }
      }
    }));
  for (auto& thread : threads) thread.get();
  ASSERT_TRUE(stream.synchronize(soon()).is_ok());
  EXPECT_EQ(done, kThreads * kEach);
}

}  // namespace
}  // namespace memspan
