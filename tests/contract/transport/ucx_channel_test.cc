// SPDX-License-Identifier: Apache-2.0
// A connection over UCX without UCX: the order of its bytes when large payloads come late, early or
// not at all, what a peer may not do, and that every buffer goes back.
#include "transport/message/ucx/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace memspan::ucx {
namespace {

using testing::HasSubstr;

// What UCX does, by order of the test.
class FakeWorker final : public ChannelWorker {
 public:
  bool post(ucp_ep_h, Chunk chunk, std::span<const iovec> payload) override {
    const auto* const header = reinterpret_cast<const char*>(&chunk);
    stream.append(header, kChunkBytes);
    for (const iovec& part : payload)
      stream.append(static_cast<const char*>(part.iov_base), part.iov_len);
    return true;
  }
  void release(ucp_ep_h, void* buffer) override { kept.erase(buffer); }
  bool post_large(ucp_ep_h, std::uint64_t number, std::span<const iovec> payload) override {
    std::string& message = messages[number];
    for (const iovec& part : payload)
      message.append(static_cast<const char*>(part.iov_base), part.iov_len);
    return true;
  }
  void fetch(void* message, Landing& landing) override {
    landing.buffer = pool.take(landing.bytes);
    landing.is_fetching = true;
    fetching.emplace_back(static_cast<std::string*>(message), &landing);
  }
  void drop(void*) override { ++dropped; }

  // The oldest fetch ends.
  void finish_fetch() {
    const auto [message, landing] = fetching.front();
    fetching.pop_front();
    landing->is_fetching = false;
    if (landing->channel == nullptr) {
      const std::unique_ptr<Landing> last(landing);
      return;
    }
    std::memcpy(landing->buffer->bytes.get(), message->data(), message->size());
    landing->is_here = true;
    landing->channel->landed("");
  }

  std::string stream;                             // sent
  std::map<std::uint64_t, std::string> messages;  // the same
  std::set<void*> kept;                           // received, by its address
  std::deque<std::pair<std::string*, Landing*>> fetching;
  BufferPool pool;
  int dropped = 0;
};

class UcxChannelTest : public testing::Test {
 protected:
  UcxChannelTest()
      : from_(here_, PollSignal::create().value()), to_(there_, PollSignal::create().value()) {
    from_.set_endpoint(reinterpret_cast<ucp_ep_h>(&here_));
    to_.set_endpoint(reinterpret_cast<ucp_ep_h>(&there_));
    from_.use_rendezvous();
    from_.open();
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
  // What was sent in the stream comes, in one buffer of UCX's.
  void deliver() {
    std::string& bytes =
        *buffers_.emplace_back(std::make_unique<std::string>(std::exchange(here_.stream, {})));
    there_.kept.insert(bytes.data());
    if (!to_.take(bytes.data(), bytes.size())) there_.kept.erase(bytes.data());
  }
  bool offer(std::uint64_t number) {
    std::string& message = here_.messages[number];
    return to_.take_large(number, &message, message.size());
  }
  void announce(std::uint32_t bytes) { here_.post(nullptr, {ChunkKind::kLarge, bytes}, {}); }
  std::string read(std::size_t most = kWindow) {
    std::string bytes(most, ' ');
    const iovec part{bytes.data(), bytes.size()};
    const ssize_t got = to_.read({&part, 1});
    if (got < 0) return "ended";
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }

  std::deque<std::unique_ptr<std::string>> buffers_;
  FakeWorker here_;
  FakeWorker there_;
  Channel from_;
  Channel to_;
};

TEST_F(UcxChannelTest, ALargePayloadHasItsPlaceAmongTheBytes) {
  const std::string bytes = text('a', kMostInChunk + 1000);
  send("first");
  send(bytes);
  send("last");
  EXPECT_EQ(here_.messages.size(), 1u) << "what is small goes in the stream";
  deliver();
  EXPECT_EQ(read(), "first");
  EXPECT_EQ(read(), "") << "the large one is not here";
  ASSERT_TRUE(offer(0));
  EXPECT_EQ(read(), "") << "it is being fetched";
  there_.finish_fetch();
  EXPECT_EQ(read(100), bytes.substr(0, 100));
  EXPECT_EQ(read(), bytes.substr(100) + "last");
}

TEST_F(UcxChannelTest, AMessageMayComeBeforeItsAnnouncementAndEndBeforeAnother) {
  const std::string first = text('b', kLargeFrom);
  const std::string second = text('c', kLargeFrom + 1);
  send(first);
  send(second);
  ASSERT_TRUE(offer(1));
  EXPECT_TRUE(there_.fetching.empty()) << "no memory is taken for what is not announced";
  deliver();
  there_.finish_fetch();
  EXPECT_EQ(read(), "");
  ASSERT_TRUE(offer(0));
  there_.finish_fetch();
  EXPECT_EQ(read(), first + second);
}

TEST_F(UcxChannelTest, TheEndIsAnsweredWhenAllIsHere) {
  const std::string bytes = text('d', kMostInChunk);
  send(bytes);
  from_.cut();
  deliver();
  EXPECT_FALSE(to_.is_finished());
  EXPECT_EQ(there_.stream, "");
  ASSERT_TRUE(offer(0));
  there_.finish_fetch();
  EXPECT_TRUE(to_.is_finished());
  EXPECT_EQ(there_.stream.size(), kChunkBytes) << "its own end";
  EXPECT_EQ(read(), bytes);
  EXPECT_EQ(read(), "ended");
}

TEST_F(UcxChannelTest, WhatIsFetchedAtACutGoesBackWhenUcxIsDone) {
  send(text('e', kMostInChunk));
  deliver();
  ASSERT_TRUE(offer(0));
  to_.cut();
  EXPECT_EQ(there_.pool.in_use(), 1u) << "UCX writes to it";
  EXPECT_FALSE(offer(1)) << "nothing more is wanted";
  there_.finish_fetch();
  EXPECT_EQ(there_.pool.in_use(), 0u);
}

TEST_F(UcxChannelTest, AfterAFailureWhatCameBeforeTheFirstMissingByteIsRead) {
  send("before");
  send(text('f', kMostInChunk));
  send("after");
  deliver();
  ASSERT_TRUE(offer(0));
  to_.fail("the network says so");
  EXPECT_EQ(read(2), "be");
  EXPECT_FALSE(to_.may_close(Deadline::never()));
  EXPECT_EQ(read(), "fore");
  EXPECT_EQ(read(), "ended");
  EXPECT_TRUE(to_.may_close(Deadline::never()));
}

TEST_F(UcxChannelTest, NoMoreMemoryIsTakenThanTheWindow) {
  for (std::uint32_t sent = 0; sent < 2 * kWindow; sent += kMostInChunk) announce(kMostInChunk);
  std::string message = text('g', kMostInChunk);
  for (std::uint64_t number = 0; number < 20; ++number)
    to_.take_large(number, &message, message.size());
  deliver();
  EXPECT_THAT(to_.failure(), HasSubstr("more than it was allowed to"));
  EXPECT_LE(there_.fetching.size(), kWindow / kMostInChunk);
}

TEST_F(UcxChannelTest, APeerThatDoesNotKeepToTheRulesIsCutOff) {
  std::string small = "no large payload";
  std::string large = text('h', kLargeFrom);
  const auto after = [&](auto wrong) {
    Channel channel(there_, PollSignal::create().value());
    channel.set_endpoint(reinterpret_cast<ucp_ep_h>(&there_));
    const auto chunk = [&](ChunkKind kind, std::uint32_t value) {
      Chunk made{kind, value};
      channel.take(&made, sizeof made);
    };
    chunk(ChunkKind::kOpen, kWindow);
    wrong(channel, chunk);
    const std::string why = channel.failure();
    channel.cut();
    while (!there_.fetching.empty()) there_.finish_fetch();
    return why;
  };
  EXPECT_EQ(after([](Channel&, auto) {}), "");
  EXPECT_THAT(after([](Channel&, auto chunk) { chunk(ChunkKind::kLarge, kLargeFrom - 1); }),
              HasSubstr("wrong size"));
  EXPECT_THAT(after([](Channel&, auto chunk) { chunk(ChunkKind::kLarge, kMostInChunk + 1); }),
              HasSubstr("wrong size"));
  EXPECT_THAT(after([&](Channel& channel, auto chunk) {
                chunk(ChunkKind::kLarge, kLargeFrom);
                channel.take_large(0, &small, small.size());
              }),
              HasSubstr("wrong size"));
  EXPECT_THAT(after([&](Channel& channel, auto chunk) {
                channel.take_large(0, &small, small.size());
                chunk(ChunkKind::kLarge, kLargeFrom);
              }),
              HasSubstr("wrong size"));
  EXPECT_THAT(after([&](Channel& channel, auto) { channel.take_large(64, &large, large.size()); }),
              HasSubstr("not its next"));
  EXPECT_THAT(after([&](Channel& channel, auto) {
                channel.take_large(0, &large, large.size());
                channel.take_large(0, &large, large.size());
              }),
              HasSubstr("not its next"));
  EXPECT_THAT(after([&](Channel& channel, auto chunk) {
                chunk(ChunkKind::kLarge, kLargeFrom);
                channel.take_large(0, &large, large.size());
                channel.take_large(0, &large, large.size());
              }),
              HasSubstr("not its next"));
}

}  // namespace
}  // namespace memspan::ucx
