// SPDX-License-Identifier: Apache-2.0
#include "fabric/async_copies.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace memspan {
namespace {

Deadline soon() {
  return Deadline::after(std::chrono::seconds(20));
}

TEST(AsyncCopiesTest, HasNothingToWaitForAtFirst) {
  AsyncCopies copies;
  EXPECT_TRUE(copies.wait(soon()).is_ok());
}

TEST(AsyncCopiesTest, WaitsForAllThatWasBegun) {
  AsyncCopies copies;
  std::atomic<int> done{0};
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(copies
                    .begin({2},
                           [&] {
                             ++done;
                             return Status::ok();
                           })
                    .is_ok());
  EXPECT_TRUE(copies.wait(soon()).is_ok());
  EXPECT_EQ(done, 100);
}

TEST(AsyncCopiesTest, TellsTheFirstFailureOnce) {
  AsyncCopies copies;
  ASSERT_TRUE(copies.begin({2}, [] { return Status(Code::kPeerLost, "gone"); }).is_ok());
  EXPECT_EQ(copies.wait(soon()).code(), Code::kPeerLost);
  EXPECT_TRUE(copies.wait(soon()).is_ok());
}

TEST(AsyncCopiesTest, ATimeOutLeavesAllAsItIs) {
  AsyncCopies copies;
  std::promise<void> gate;
  ASSERT_TRUE(copies
                  .begin({2},
                         [&] {
                           gate.get_future().get();
                           return Status(Code::kStale, "late");
                         })
                  .is_ok());
  const Status late = copies.wait(Deadline::after(std::chrono::milliseconds(1)));
  EXPECT_EQ(late.code(), Code::kTimeout);
  EXPECT_NE(late.message().find("the oldest with rank 2"), std::string::npos) << late.message();
  gate.set_value();
  EXPECT_EQ(copies.wait(soon()).code(), Code::kStale);
}

TEST(AsyncCopiesTest, AThreadWaitsForItsOwnOnly) {
  AsyncCopies copies, others;
  std::promise<void> gate, begun;
  std::thread other([&] {
    EXPECT_TRUE(others
                    .begin({2},
                           [&] {
                             gate.get_future().get();
                             return Status(Code::kPeerLost, "theirs");
                           })
                    .is_ok());
    begun.set_value();
    EXPECT_EQ(others.wait(soon()).code(), Code::kPeerLost);
  });
  begun.get_future().get();
  EXPECT_TRUE(others.wait(soon()).is_ok());
  EXPECT_TRUE(copies.wait(soon()).is_ok());
  gate.set_value();
  other.join();
}

}  // namespace
}  // namespace memspan
