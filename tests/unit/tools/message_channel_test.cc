// SPDX-License-Identifier: Apache-2.0
#include "launcher/message_channel.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace memspan::launcher {
namespace {

// One that writes to another.
class MessageChannelTest : public testing::Test {
 protected:
  MessageChannelTest() {
    int forth[2];
    int back[2];
    EXPECT_EQ(pipe2(forth, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(back, O_CLOEXEC), 0);
    near_.emplace(MessageChannel::make(Fd(back[0]), Fd(forth[1])).value());
    far_.emplace(MessageChannel::make(Fd(forth[0]), Fd(back[1])).value());
  }

  void send_raw(const std::string& bytes) { near_->send_line(bytes); }

  std::optional<MessageChannel> near_;
  std::optional<MessageChannel> far_;
};

TEST_F(MessageChannelTest, GivesWhatWasSentInOrder) {
  near_->send_line(greeting());
  near_->send({.kind = Kind::kEnded, .rank = 3, .process = 77, .value = -6});
  near_->send({.kind = Kind::kInput, .text = std::string("a\0b", 3)});
  EXPECT_TRUE(far_->receive());
  EXPECT_EQ(far_->take_line(), greeting());
  const Message first = *far_->next().value();
  EXPECT_EQ(first.kind, Kind::kEnded);
  EXPECT_EQ(first.rank, 3);
  EXPECT_EQ(first.process, 77);
  EXPECT_EQ(first.value, -6);
  EXPECT_EQ(far_->next().value()->text, std::string("a\0b", 3));
  EXPECT_FALSE(far_->next().value().has_value());
}

TEST_F(MessageChannelTest, WhatDoesNotFitThePipeComesLater) {
  const std::string text(std::size_t{1} << 20, 'x');
  near_->send({.kind = Kind::kInput, .text = text});
  EXPECT_TRUE(near_->wants_to_write());
  std::optional<Message> message;
  while (!message) {
    near_->flush();
    EXPECT_TRUE(far_->receive());
    message = far_->next().value();
  }
  EXPECT_EQ(message->text, text);
  EXPECT_FALSE(near_->wants_to_write());
}

TEST_F(MessageChannelTest, TheEndComesAfterWhatWasSent) {
  near_->send({.kind = Kind::kDone});
  near_->close_out();
  EXPECT_FALSE(far_->receive());
  EXPECT_EQ(far_->next().value()->kind, Kind::kDone);
  EXPECT_FALSE(far_->next().value().has_value());
}

TEST_F(MessageChannelTest, ALineIsTakenWhenItIsWholeOrTooLong) {
  send_raw("half");
  EXPECT_TRUE(far_->receive());
  EXPECT_FALSE(far_->take_line());
  send_raw(" a line\nmore");
  EXPECT_TRUE(far_->receive());
  EXPECT_EQ(far_->take_line(), "half a line\n");
  send_raw(std::string(1000, 'x'));
  EXPECT_TRUE(far_->receive());
  EXPECT_EQ(far_->take_line().value().substr(0, 5), "morex");
}

TEST_F(MessageChannelTest, RefusesWhatIsNoMessage) {
  send_raw(std::string("\xff\xff\xff\xff", 4));
  EXPECT_TRUE(far_->receive());
  EXPECT_EQ(far_->next().code(), Code::kInvalidArgument);
}

TEST_F(MessageChannelTest, RefusesAMessageOfAnotherShape) {
  send_raw(std::string("\x03\0\0\0abc", 7));
  EXPECT_TRUE(far_->receive());
  EXPECT_EQ(far_->next().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace memspan::launcher
