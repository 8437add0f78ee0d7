// SPDX-License-Identifier: Apache-2.0
#include "device/stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>

namespace memspan {
namespace {

Deadline soon() {
  return Deadline::after(std::chrono::seconds(60));
}

// Work that waits until it is let go.
struct Gate {
  std::promise<void> opener;
  std::shared_future<void> opened = opener.get_future().share();
  Stream::Work work() const {
    return [opened = opened] {
      opened.wait();
      return Status::ok();
    };
  }
};

TEST(EventTest, OneThatWasNeverRecordedIsOver) {
  Event event;
  Stream stream;
  EXPECT_TRUE(event.is_over());
  EXPECT_TRUE(event.synchronize(Deadline::after(Duration::zero())).is_ok());
  EXPECT_TRUE(event.hold(stream).is_ok());
  EXPECT_TRUE(stream.synchronize(soon()).is_ok());
}

TEST(EventTest, AStreamWaitsForAnotherOnesPlace) {
  Gate gate;
  Stream first;
  Stream second;
  Event event;
  std::atomic<int> done{0};
  ASSERT_TRUE(first.submit(gate.work()).is_ok());
  ASSERT_TRUE(event.record(first).is_ok());
  ASSERT_TRUE(event.hold(second).is_ok());
  ASSERT_TRUE(second
                  .submit([&] {
                    done.store(1);
                    return Status::ok();
                  })
                  .is_ok());
  EXPECT_FALSE(event.is_over());
  EXPECT_EQ(event.synchronize(Deadline::after(std::chrono::milliseconds(1))).code(),
            Code::kTimeout);
  EXPECT_EQ(done.load(), 0);
  gate.opener.set_value();
  ASSERT_TRUE(second.synchronize(soon()).is_ok());
  EXPECT_EQ(done.load(), 1);
  EXPECT_TRUE(event.is_over());
  ASSERT_TRUE(first.synchronize(soon()).is_ok());
}

// Who waits took the place that was the last then.
TEST(EventTest, ALaterRecordingHoldsNobodyWhoWaitedBefore) {
  Gate gate;
  Stream first;
  Stream second;
  std::optional<Event> event(std::in_place);
  ASSERT_TRUE(event->record(first).is_ok());
  ASSERT_TRUE(event->hold(second).is_ok());
  ASSERT_TRUE(first.submit(gate.work()).is_ok());
  ASSERT_TRUE(event->record(first).is_ok());
  ASSERT_TRUE(second.synchronize(soon()).is_ok());
  EXPECT_FALSE(event->is_over());
  event.reset();  // before what it recorded
  gate.opener.set_value();
  ASSERT_TRUE(first.synchronize(soon()).is_ok());
}

// The thread that synchronizes does the second stream's work, which waits for the first's thread.
TEST(EventTest, WhoSynchronizesWithoutALimitWaitsInTheStreamsPlace) {
  for (int i = 0; i < 200; ++i) {
    Stream first;
    Stream second;
    Event event;
    int value = 0;
    ASSERT_TRUE(first
                    .submit([&] {
                      value = 1;
                      return Status::ok();
                    })
                    .is_ok());
    ASSERT_TRUE(event.record(first).is_ok());
    ASSERT_TRUE(event.hold(second).is_ok());
    ASSERT_TRUE(second.synchronize(Deadline::never()).is_ok());
    EXPECT_EQ(value, 1);
  }
}

}  // namespace
}  // namespace memspan
