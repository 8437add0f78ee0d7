// SPDX-License-Identifier: Apache-2.0
// Messages and counters, both ends in this process.
#include "fabric/transfer/notification_queue.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <optional>
#include <thread>

#include "fabric/transfer/registration_table.h"

namespace memspan::transfer {
namespace {

const Deadline kNow = Deadline::after(Duration::zero());

TEST(NotificationQueueTest, GivesMessagesInTheirOrder) {
  const auto notifications = NotificationQueue::create();
  ASSERT_TRUE(notifications.is_ok());
  const auto end = notifications->sending_end();
  ASSERT_TRUE(end.is_ok());
  EXPECT_EQ(notifications->receive(kNow).code(), Code::kTimeout);
  const std::string longest(kMostMessageBytes, 'x');
  ASSERT_TRUE(send_notification(*end, {"[::1]:1", ""}).is_ok());
  ASSERT_TRUE(send_notification(*end, {"10.0.0.1:1", longest}).is_ok());
  auto first = notifications->receive(kNow);
  ASSERT_TRUE(first.is_ok());
  EXPECT_EQ(first->sender, "[::1]:1");
  EXPECT_EQ(first->message, "");
  auto second = notifications->receive(Deadline::never());
  ASSERT_TRUE(second.is_ok());
  EXPECT_EQ(second->message, longest);
  EXPECT_EQ(notifications->receive(kNow).code(), Code::kTimeout);
}

TEST(NotificationQueueTest, TakesNoNoticeOfWhatIsNoMessage) {
  const auto notifications = NotificationQueue::create();
  const auto end = notifications->sending_end();
  for (const std::string& junk :
       {std::string("x"), std::string(2000, '\xff'), std::string(8, 0) + "y"})
    ASSERT_EQ(send(end->get(), junk.data(), junk.size(), 0), static_cast<ssize_t>(junk.size()));
  ASSERT_TRUE(send_notification(*end, {"a", std::string(kMostMessageBytes + 1, 'x')}).is_ok());
  ASSERT_TRUE(send_notification(*end, {"a", "good"}).is_ok());
  const auto received = notifications->receive(kNow);
  ASSERT_TRUE(received.is_ok()) << received.status().to_string();
  EXPECT_EQ(received->message, "good");
}

TEST(NotificationQueueTest, IsFullAtSomeHundredAndLosesNone) {
  const auto notifications = NotificationQueue::create();
  const auto end = notifications->sending_end();
  int sent = 0;
  Status status;
  while ((status = send_notification(*end, {"a", std::to_string(sent)})).is_ok()) ++sent;
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_GE(sent, 200);
  for (int i = 0; i < sent; ++i)
    EXPECT_EQ(notifications->receive(kNow)->message, std::to_string(i));
  EXPECT_TRUE(send_notification(*end, {"a", ""}).is_ok());
}

TEST(NotificationQueueTest, EndsItsWaits) {
  const auto notifications = NotificationQueue::create();
  std::thread waiter(
      [&] { EXPECT_EQ(notifications->receive(Deadline::never()).code(), Code::kUnavailable); });
  notifications->end();
  waiter.join();
  EXPECT_EQ(notifications->receive(Deadline::never()).code(), Code::kUnavailable);
}

TEST(NotificationQueueTest, SaysThatNobodyReadsAnyMore) {
  std::optional<NotificationQueue> notifications = std::move(NotificationQueue::create()).value();
  const auto end = notifications->sending_end();
  notifications.reset();
  EXPECT_EQ(send_notification(*end, {"a", ""}).code(), Code::kPeerLost);
}

TEST(CountersTest, AreAddedToAndWaitedFor) {
  const auto pages = RegistrationPages::create();
  ASSERT_TRUE(pages.is_ok());
  auto& counters = pages->counters();
  EXPECT_TRUE(check_counter(table_layout::kCounters - 1).is_ok());
  EXPECT_EQ(check_counter(table_layout::kCounters).code(), Code::kInvalidArgument);
  std::atomic<bool> is_over{false};
  EXPECT_TRUE(wait_for_counter(counters, 3, 0, is_over, kNow).is_ok());
  EXPECT_EQ(wait_for_counter(counters, 3, 1, is_over, kNow).code(), Code::kTimeout);
  constexpr std::uint64_t kEach = 20'000;
  std::thread adders[2];
  for (auto& adder : adders)
    adder = std::thread([&] {
      for (std::uint64_t i = 0; i < kEach; ++i) add_to_counter(counters, 3, 1);
    });
  for (std::uint64_t value = 1; value <= 2 * kEach; value += 97)
    EXPECT_TRUE(wait_for_counter(counters, 3, value, is_over, Deadline::never()).is_ok());
  for (auto& adder : adders) adder.join();
  EXPECT_EQ(read_counter(counters, 3), 2 * kEach);
  EXPECT_EQ(read_counter(counters, 2), 0u);
  EXPECT_EQ(counters.added.sleepers.load(), 0u);
  std::thread ender([&] {
    is_over = true;
    notify(counters.added);
  });
  EXPECT_EQ(wait_for_counter(counters, 3, UINT64_MAX, is_over, Deadline::never()).code(),
            Code::kUnavailable);
  ender.join();
}

}  // namespace
}  // namespace memspan::transfer
