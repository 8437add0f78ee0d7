// SPDX-License-Identifier: Apache-2.0
#include "world/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "node/event_count.h"

namespace memspan {
namespace {

using testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Buffer copy_of(std::span<const std::byte> bytes) {
  Buffer copy(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.begin());
  return copy;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// PE 0 is this process; what it sends comes back as if PE 1 had sent it.
class MessagesTest : public testing::Test {
 protected:
  MessagesTest() : segment_(NodeSegment::create(2, 1 << 20, false).value()) {
    allow_fences_from_peers();
    waiting_.segment = &segment_;
    waiting_.self = &segment_.peer(0);
    waiting_.generation = 1;
    messages_.set_carriage(carriage({}));
  }
  Messages::Carriage carriage(std::function<void()> progress) {
    const auto send = [this](int peer, const MessageTag& tag, std::span<const std::byte> bytes,
                             const Deadline&) {
      return messages_.deliver(peer, tag, copy_of(bytes));
    };
    return {send, std::move(progress)};
  }
  Result<Buffer> receive(const MessageKey& key) {
    return messages_.receive("test", 1, key, [this] { return waiting_.is_gone(1) ? 1 : -1; });
  }
  void let_come(const MessageKey& key, const std::string& text) {
    ASSERT_TRUE(messages_.send(1, key, bytes_of(text)).is_ok());
  }

  NodeSegment segment_;
  WaitContext waiting_;
  Messages messages_{waiting_};
};

TEST_F(MessagesTest, WhatCameBeforeItWasAskedForIsKept) {
  let_come({MessageKind::kData, 7, 1}, "one");
  let_come({MessageKind::kData, 7, 2}, "two");
  EXPECT_EQ(text_of(receive({MessageKind::kData, 7, 2}).value()), "two");
  EXPECT_EQ(text_of(receive({MessageKind::kData, 7, 1}).value()), "one");
  EXPECT_FALSE(messages_.poll(1, {MessageKind::kData, 7, 1}).has_value());
}

TEST_F(MessagesTest, EveryPartOfTheKeyCounts) {
  let_come({MessageKind::kData, 7, 1}, "x");
  EXPECT_FALSE(messages_.poll(0, {MessageKind::kData, 7, 1}).has_value());
  EXPECT_FALSE(messages_.poll(1, {MessageKind::kBarrier, 7, 1}).has_value());
  EXPECT_FALSE(messages_.poll(1, {MessageKind::kData, 8, 1}).has_value());
  EXPECT_FALSE(messages_.poll(1, {MessageKind::kData, 7, 2}).has_value());
  EXPECT_TRUE(messages_.poll(1, {MessageKind::kData, 7, 1}).has_value());
}

TEST_F(MessagesTest, TheSameKeyIsReceivedInTheOrderOfSending) {
  const MessageKey key{MessageKind::kData, 1, 0};
  for (const char* text : {"a", "b", "c"}) let_come(key, text);
  for (const char* text : {"a", "b", "c"}) EXPECT_EQ(text_of(receive(key).value()), text);
}

TEST_F(MessagesTest, EmptyAndLargeOnesComeWhole) {
  const MessageKey key{MessageKind::kData, 1, 0};
  let_come(key, "");
  EXPECT_EQ(receive(key).value().size(), 0u);
  const std::string large(Messages::kMostBytes, 'x');
  let_come(key, large);
  EXPECT_EQ(text_of(receive(key).value()), large);
}

TEST_F(MessagesTest, ASleeperIsWokenByWhatComes) {
  const MessageKey key{MessageKind::kBarrier, 1, 1};
  std::thread sender([&] {
    while (segment_.peer(0).sleeps.load() == 0) std::this_thread::yield();
    let_come(key, "late");
  });
  EXPECT_EQ(text_of(receive(key).value()), "late");
  sender.join();
}

TEST_F(MessagesTest, AWaiterTakesFramesItself) {
  const MessageKey key{MessageKind::kBarrier, 1, 1};
  int looks = 0;
  messages_.set_carriage(carriage([&] {
    if (++looks == 3) let_come(key, "taken");
  }));
  EXPECT_EQ(text_of(receive(key).value()), "taken");
}

TEST_F(MessagesTest, AWaitForOneThatDiedEndsAndNamesIt) {
  segment_.peer(1).state.store(PeerState::kJoined);
  segment_.mark_lost(1, kUnseenEnd);
  const auto received = receive({MessageKind::kData, 1, 1});
  EXPECT_EQ(received.code(), Code::kPeerLost);
  EXPECT_THAT(std::string(received.status().message()), HasSubstr("PE 1"));
}

TEST_F(MessagesTest, WhatTheDeadHaveSentIsReceived) {
  const MessageKey key{MessageKind::kData, 1, 1};
  let_come(key, "last words");
  segment_.peer(1).state.store(PeerState::kJoined);
  segment_.mark_lost(1, kUnseenEnd);
  EXPECT_EQ(text_of(receive(key).value()), "last words");
}

TEST_F(MessagesTest, NoticesGoToTheirHandler) {
  std::string seen;
  messages_.set_notice_handler(
      [&](int from, std::uint64_t id, std::uint64_t sequence, std::span<const std::byte> bytes) {
        seen = std::to_string(from) + " " + std::to_string(id) + " " + std::to_string(sequence) +
               " " + text_of(bytes);
      });
  let_come({MessageKind::kNotice, 3, 4}, "died");
  EXPECT_EQ(seen, "1 3 4 died");
  EXPECT_FALSE(messages_.poll(1, {MessageKind::kNotice, 3, 4}).has_value());
}

TEST_F(MessagesTest, DiscardDropsWhatIsOfOneTeam) {
  let_come({MessageKind::kData, 1, 1}, "x");
  let_come({MessageKind::kData, 2, 1}, "y");
  let_come({MessageKind::kBarrier, 1, 1}, "z");
  messages_.discard(MessageKind::kData, 1);
  EXPECT_FALSE(messages_.poll(1, {MessageKind::kData, 1, 1}).has_value());
  EXPECT_TRUE(messages_.poll(1, {MessageKind::kData, 2, 1}).has_value());
  EXPECT_TRUE(messages_.poll(1, {MessageKind::kBarrier, 1, 1}).has_value());
}

TEST_F(MessagesTest, WhatIsNoMessageIsRefused) {
  EXPECT_EQ(messages_.deliver(1, {99, 1, 1}, Buffer(8)).code(), Code::kInvalidArgument);
  EXPECT_EQ(messages_.deliver(1, {0, 1, 1}, Buffer(8)).code(), Code::kInvalidArgument);
  const std::vector<std::byte> too_much(Messages::kMostBytes + 1);
  EXPECT_EQ(messages_.send(1, {}, too_much).code(), Code::kInvalidArgument);
  EXPECT_FALSE(messages_.poll(1, {99, 1, 1}).has_value());
}

}  // namespace
}  // namespace memspan
