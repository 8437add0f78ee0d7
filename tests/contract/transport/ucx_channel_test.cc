// SPDX-License-Identifier: Apache-2.0
// A connection over UCX without UCX: the order of its bytes when messages come late, early or not
// at all, what a peer may not do, and that every buffer goes back.
#include "transport/message/ucx/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace memspan::ucx {
namespace {

using testing::HasSubstr;

constexpr std::size_t kLarge = 100'000;  // so many bytes and more are fetched

struct Message {
  MessageHeader header;
  std::string bytes;
};

// What UCX does, by order of the test.
class FakeWorker final : public ChannelWorker {
 public:
  bool post(Channel&, const MessageHeader& header, std::span<const iovec> data) override {
    auto& message = *sent.emplace_back(std::make_unique<Message>(Message{header, {}}));
    for (const iovec& part : data)
      message.bytes.append(static_cast<const char*>(part.iov_base), part.iov_len);
    return true;
  }
  void fetch(void* offer, Arrival& arrival) override {
    arrival.buffer = pool.take(arrival.bytes);
    fetching.emplace_back(static_cast<char*>(offer), &arrival);
  }
  void release(void* held) override { kept.erase(held); }

  // The oldest fetch ends.
  void finish_fetch(bool is_complete = true) {
    const auto [bytes, arrival] = fetching.front();
    fetching.pop_front();
    std::memcpy(arrival->buffer->bytes.get(), bytes, arrival->bytes);
    arrival->channel->fetched(*arrival, is_complete);
  }

  std::deque<std::unique_ptr<Message>> sent;
  std::set<void*> kept;  // bytes that a channel has
  std::deque<std::pair<char*, Arrival*>> fetching;
  BufferPool pool;
};

class UcxChannelTest : public testing::Test {
 protected:
  UcxChannelTest() : from_(here_), to_(there_) {
    from_.set_endpoint(reinterpret_cast<ucp_ep_h>(&here_));
    to_.set_endpoint(reinterpret_cast<ucp_ep_h>(&there_));
    from_.open();
    deliver();
    to_.on_change([this] { ++changes_; });
  }
  ~UcxChannelTest() override {
    to_.cut();
    while (!there_.fetching.empty()) there_.finish_fetch();
    EXPECT_TRUE(there_.kept.empty()) << "UCX has all its buffers again";
    EXPECT_EQ(there_.pool.in_use(), 0u);
  }
  static std::string text(char first, std::size_t bytes) {
    std::string made(bytes, ' ');
    for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<char>(first + i % 101);
    return made;
  }
  void send(std::string bytes) {
    const iovec part{bytes.data(), bytes.size()};
    ASSERT_EQ(from_.write({&part, 1}), std::ssize(bytes));
  }
  // The message comes that was sent at this place of those on their way.
  void deliver(std::size_t place = 0) {
    Message& message = *here_.sent.at(place);
    delivered_.push_back(std::move(here_.sent[place]));
    here_.sent.erase(here_.sent.begin() + static_cast<std::ptrdiff_t>(place));
    give(to_, message.header, message.bytes);
  }
  void give(Channel& to, const MessageHeader& header, std::string& bytes) {
    const bool is_offer = bytes.size() >= kLarge;
    void* const data = bytes.data();
    if (!is_offer) there_.kept.insert(data);
    if (!to.take(header, data, bytes.size(), is_offer)) there_.kept.erase(data);
  }
  std::string read(std::size_t most = kWindow) {
    std::string bytes(most, ' ');
    const iovec part{bytes.data(), bytes.size()};
    const ssize_t got = to_.read({&part, 1});
    if (got < 0) return "ended";
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }

  std::deque<std::unique_ptr<Message>> delivered_;
  FakeWorker here_;
  FakeWorker there_;
  Channel from_;
  Channel to_;
  int changes_ = 0;
};

TEST_F(UcxChannelTest, MessagesAreReadInTheirOrder) {
  const std::string large = text('a', kLarge);
  send("first");
  send(large);
  send("last");
  deliver(2);
  EXPECT_EQ(read(), "") << "those before it are not here";
  EXPECT_EQ(changes_, 0);
  deliver();
  EXPECT_EQ(changes_, 1);
  EXPECT_EQ(read(2), "fi");
  EXPECT_EQ(read(), "rst");
  deliver();
  EXPECT_EQ(read(), "") << "it is being fetched";
  there_.finish_fetch();
  EXPECT_EQ(changes_, 2);
  EXPECT_EQ(read(100), large.substr(0, 100));
  EXPECT_EQ(read(), large.substr(100) + "last");
}

TEST_F(UcxChannelTest, FetchesMayEndInAnotherOrder) {
  const std::string first = text('b', kLarge);
  const std::string second = text('c', kLarge + 1);
  send(first);
  send(second);
  deliver(1);
  there_.finish_fetch();
  EXPECT_EQ(read(), "");
  deliver();
  there_.finish_fetch();
  EXPECT_EQ(read(), first + second);
}

TEST_F(UcxChannelTest, WhatIsReadMakesRoom) {
  const std::string bytes = text('d', kMostInMessage);
  const iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  int sent = 0;
  while (from_.write({&part, 1}) > 0) ++sent;
  EXPECT_EQ(sent, static_cast<int>(kWindow / (kMostInMessage + kMessageCost)));
  bool has_room = false;
  from_.on_change([&] { has_room = true; });
  std::string none;
  for (int i = 0; i < sent; ++i) {
    deliver();
    there_.finish_fetch();
    EXPECT_EQ(read(), bytes);
  }
  EXPECT_EQ(there_.sent.size(), 3u) << "not one for each message";
  give(from_, there_.sent.back()->header, none);
  EXPECT_TRUE(has_room);
  send(bytes);
}

TEST_F(UcxChannelTest, TheEndIsAnsweredWhenAllIsHere) {
  const std::string bytes = text('e', kLarge);
  send(bytes);
  from_.cut();
  deliver(1);
  EXPECT_FALSE(to_.is_finished());
  deliver();
  EXPECT_TRUE(there_.sent.empty());
  there_.finish_fetch();
  EXPECT_TRUE(to_.is_finished());
  ASSERT_EQ(there_.sent.size(), 1u);
  EXPECT_EQ(there_.sent.front()->header.kind, MessageKind::kEnd);
  EXPECT_EQ(read(), bytes);
  EXPECT_EQ(read(), "ended");
}

TEST_F(UcxChannelTest, AfterACutOnlyThePeersEndMatters) {
  send("unread");
  send(text('f', kLarge));
  send(text('g', kLarge));
  deliver();
  deliver();
  to_.cut();
  EXPECT_TRUE(there_.kept.empty());
  EXPECT_EQ(there_.pool.in_use(), 1u) << "UCX writes to it";
  EXPECT_TRUE(to_.is_in_use());
  deliver();
  EXPECT_EQ(there_.fetching.size(), 1u) << "nothing more is wanted";
  from_.cut();
  deliver();
  EXPECT_FALSE(to_.may_close(Deadline::never()));
  there_.finish_fetch();
  EXPECT_EQ(there_.pool.in_use(), 0u);
  EXPECT_TRUE(to_.may_close(Deadline::never()));
  EXPECT_EQ(read(), "ended");
}

TEST_F(UcxChannelTest, AfterAFailureWhatCameBeforeTheFirstMissingByteIsRead) {
  send("before");
  send(text('h', kLarge));
  send("after");
  for (int i = 0; i < 3; ++i) deliver();
  there_.finish_fetch(false);
  EXPECT_THAT(to_.failure(), HasSubstr("did not come"));
  EXPECT_TRUE(to_.may_close(Deadline::never()));
  EXPECT_EQ(read(2), "be");
  EXPECT_EQ(read(), "fore");
  EXPECT_EQ(read(), "ended");
}

TEST_F(UcxChannelTest, APeerThatDoesNotKeepToTheRulesIsCutOff) {
  const auto after = [&](std::initializer_list<std::pair<MessageHeader, std::size_t>> messages) {
    Channel channel(there_);
    channel.set_endpoint(reinterpret_cast<ucp_ep_h>(&there_));
    std::string bytes(kMostInMessage + 1, 'x');
    std::string why;
    for (const auto& [header, size] : messages) {
      bytes.resize(size);
      give(channel, header, bytes);
    }
    why = channel.failure();
    channel.cut();
    while (!there_.fetching.empty()) there_.finish_fetch();
    return why;
  };
  using enum MessageKind;
  EXPECT_EQ(after({{{kCredit, 0, 0}, 0}, {{kData, 0, 0}, 5}, {{kEnd, 1, 0}, 0}}), "");
  for (const MessageHeader& wrong : {MessageHeader{kCredit, 0, 0}, {kEnd, 0, 0}, {{}, 0, 0}})
    EXPECT_THAT(after({{wrong, 1}}), HasSubstr("another kind"));
  EXPECT_THAT(after({{{kData, 0, 0}, 0}}), HasSubstr("another kind"));
  EXPECT_THAT(after({{{kData, 0, 0}, kMostInMessage + 1}}), HasSubstr("another kind"));
  EXPECT_THAT(after({{{kData, 0, 1}, 5}}), HasSubstr("what was not sent"));
  EXPECT_THAT(after({{{kData, 1, 0}, 5}, {{kData, 1, 0}, 6}}), HasSubstr("not its next"));
  EXPECT_THAT(after({{{kData, kWindow, 0}, 5}}), HasSubstr("not its next"));
  EXPECT_THAT(after({{{kData, ~std::uint64_t{0}, 0}, 5}}), HasSubstr("not its next"));
}

TEST_F(UcxChannelTest, NoMoreMemoryIsTakenThanTheWindow) {
  std::string large = text('i', kMostInMessage);
  for (std::uint64_t number = 0; number < 20; ++number)
    give(to_, {MessageKind::kData, number, 0}, large);
  EXPECT_THAT(to_.failure(), HasSubstr("more than it was allowed to"));
  EXPECT_EQ(there_.fetching.size(), kWindow / (kMostInMessage + kMessageCost));
  while (!there_.fetching.empty()) there_.finish_fetch();  // they read `large`
}

}  // namespace
}  // namespace memspan::ucx
