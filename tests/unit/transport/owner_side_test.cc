// SPDX-License-Identifier: Apache-2.0
#include "transport/message/owner_side.h"

#include <gtest/gtest.h>

#include <cstring>

#include "transport/link.h"

namespace memspan {
namespace {

constexpr std::size_t kBytes = 256;
constexpr SipKey kSecret{1, 2};

// Gives keys that name the memory.
class Keys final : public NativeAccess {
 public:
  explicit Keys(std::byte* begin) : begin_(begin) {}
  Result<std::string> key(std::byte* base, std::size_t bytes) override {
    return "key of " + std::to_string(base - begin_) + "+" + std::to_string(bytes);
  }
  void retract(std::byte*, std::size_t) override {}
  Result<std::unique_ptr<NativeMemory>> open(std::string_view) override {
    return Status(Code::kNotSupported, "no test opens it");
  }
  std::uint64_t registrations() const override { return 0; }

 private:
  std::byte* const begin_;
};

class OwnerSideTest : public testing::Test, public AnswerSink {
 protected:
  OwnerSideTest() : side_(services_, *this), reader_(side_, session_) {
    services_.native = &keys_;
    id_ = regions_.add({.base = memory_.data() + 64, .bytes = kBytes}).value();
    FrameHeader header;
    encode(Hello{.nonce = peer_.nonce()}.frame(), header);
    peer_.seal(header, 0);
    EXPECT_TRUE(session_.open(header, 0).is_ok());
  }
  void deliver(const MessageTag& tag, Buffer bytes) override {
    messages_ += std::to_string(tag.kind) + "." + std::to_string(tag.id) + "." +
                 std::to_string(tag.sequence) + ":" +
                 std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  bool is_delivered() override { return is_delivered_; }
  Status answer(const Frame& frame, std::span<const std::byte> payload) override {
    answers_.push_back(frame);
    texts_.emplace_back(reinterpret_cast<const char*>(payload.data()), payload.size());
    return Status::ok();
  }
  // As if it came from the peer, in pieces of `piece` bytes.
  Status send(Frame frame, std::string_view payload = {}, std::size_t piece = 7) {
    frame.payload = static_cast<std::uint32_t>(payload.size());
    FrameHeader header;
    encode(frame, header);
    peer_.seal(header, sequence_++);
    std::string bytes(reinterpret_cast<const char*>(header.data()), header.size());
    bytes += payload;
    for (std::size_t at = 0; at < bytes.size();) {
      std::array<iovec, 2> places;
      const std::size_t count = reader_.prepare(places);
      std::size_t moved = 0;
      for (std::size_t i = 0; i < count && moved < piece; ++i) {
        const std::size_t part = std::min({places[i].iov_len, bytes.size() - at, piece - moved});
        std::memcpy(places[i].iov_base, bytes.data() + at, part);
        moved += part;
        at += part;
      }
      MEMSPAN_PASS(reader_.received(moved));
    }
    return Status::ok();
  }
  Frame put_at(std::uint64_t offset) {
    return {.type = FrameType::kPut, .tag = 5, .region = id_, .offset = offset};
  }
  std::uint64_t refused(Refusal refusal) {
    return services_.counters.refused[static_cast<std::size_t>(refusal)].load();
  }
  std::string_view region() { return {reinterpret_cast<const char*>(memory_.data()) + 64, kBytes}; }
  bool is_around_untouched() {
    for (std::size_t i = 0; i < 64; ++i)
      if (memory_[i] != std::byte{} || memory_[64 + kBytes + i] != std::byte{}) return false;
    return true;
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(kBytes + 128);
  std::string messages_;
  bool is_delivered_ = true;
  Keys keys_{memory_.data()};
  OwnerServices services_;
  RegionTable& regions_ = services_.regions;
  RegionId id_;
  std::vector<Frame> answers_;
  std::vector<std::string> texts_;
  Session peer_ = Session::connecting(kSecret);
  Session session_ = Session::accepting(kSecret);
  OwnerSide side_;
  FrameReader reader_;
  std::uint32_t sequence_ = 0;
};

TEST_F(OwnerSideTest, AppliesWhatIsAllowed) {
  ASSERT_TRUE(send(put_at(10), "hello").is_ok());
  EXPECT_EQ(region().substr(10, 5), "hello");
  EXPECT_TRUE(side_.take_applied());
  EXPECT_FALSE(side_.take_applied());
  ASSERT_TRUE(
      send({.type = FrameType::kGet, .tag = 8, .region = id_, .offset = 10, .length = 5}).is_ok());
  EXPECT_EQ(answers_.back().type, FrameType::kData);
  EXPECT_EQ(answers_.back().tag, 8u);
  EXPECT_EQ(texts_.back(), "hello");
  const Frame message{
      .type = FrameType::kMessage, .tag = 77, .region = {}, .operand = 5, .compare = 6};
  ASSERT_TRUE(send(message, "text").is_ok());
  EXPECT_EQ(messages_, "77.5.6:text");
}

TEST_F(OwnerSideTest, AnswersOnlyWhenEarlierMessagesAreHandled) {
  is_delivered_ = false;
  ASSERT_TRUE(send({.type = FrameType::kMessage, .tag = 1, .region = {}}, "text").is_ok());
  ASSERT_TRUE(send({.type = FrameType::kFlush, .tag = 2, .region = {}}).is_ok());
  EXPECT_TRUE(reader_.is_waiting());
  EXPECT_TRUE(answers_.empty());
  is_delivered_ = true;
  ASSERT_TRUE(reader_.received(0).is_ok());
  EXPECT_FALSE(reader_.is_waiting());
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_.back().type, FrameType::kFlushed);
}

TEST_F(OwnerSideTest, GivesKeysOfWholeWindowsOfRegionsThatLast) {
  std::vector<std::byte> lasting(kBytes);
  const RegionId id =
      regions_.add({.base = lasting.data(), .bytes = kBytes, .lasts = true}).value();
  const auto ask = [&](RegionId region, std::uint64_t offset, std::uint64_t bytes) {
    EXPECT_TRUE(send({.type = FrameType::kKey,
                      .tag = 9,
                      .region = region,
                      .offset = offset,
                      .length = kMostKey,
                      .operand = bytes})
                    .is_ok());
    EXPECT_EQ(answers_.back().tag, 9u);
    return answers_.back();
  };
  EXPECT_EQ(ask(id, 0, kBytes).type, FrameType::kKeyed);
  EXPECT_EQ(texts_.back(), "key of " + std::to_string(lasting.data() - memory_.data()) + "+" +
                               std::to_string(kBytes));
  EXPECT_EQ(ask(id_, 0, kBytes).payload, 0u) << "it does not last";
  EXPECT_EQ(ask(id, 0, kBytes - 1).payload, 0u) << "no window";
  EXPECT_EQ(ask(id, 8, kBytes - 8).payload, 0u) << "no window";
  const Frame refused = ask(id, 0, kBytes + 1);
  EXPECT_EQ(refused.type, FrameType::kRefused);
  EXPECT_EQ(refused.flags, kWantsAnswer);
  EXPECT_EQ(refused.kind, static_cast<std::uint8_t>(Refusal::kBounds));
}

TEST_F(OwnerSideTest, RefusesAPutThatLeavesTheRegionAndThrowsItsPayloadAway) {
  for (const std::uint64_t offset : {std::uint64_t{kBytes - 3}, UINT64_MAX, UINT64_MAX - 2}) {
    ASSERT_TRUE(send(put_at(offset), "12345").is_ok());
    EXPECT_EQ(answers_.back().type, FrameType::kRefused);
    EXPECT_EQ(answers_.back().tag, 5u);
    EXPECT_EQ(answers_.back().flags, 0);
  }
  EXPECT_EQ(refused(Refusal::kBounds), 3u);
  EXPECT_TRUE(is_around_untouched());
  EXPECT_EQ(region(), std::string(kBytes, '\0'));
  ASSERT_TRUE(send(put_at(0), "fine").is_ok());
  EXPECT_EQ(region().substr(0, 4), "fine");
}

TEST_F(OwnerSideTest, RefusesAnotherRegionOrGeneration) {
  Frame frame = put_at(0);
  frame.region.number += 1;
  ASSERT_TRUE(send(frame, "x").is_ok());
  frame = put_at(0);
  frame.region.generation += 1;
  ASSERT_TRUE(send(frame, "x").is_ok());
  EXPECT_EQ(refused(Refusal::kRegion), 1u);
  EXPECT_EQ(refused(Refusal::kGeneration), 1u);
  regions_.remove(id_);
  ASSERT_TRUE(send(put_at(0), "x").is_ok());
  EXPECT_EQ(refused(Refusal::kGeneration), 2u);
  EXPECT_EQ(region(), std::string(kBytes, '\0'));
}

TEST_F(OwnerSideTest, RefusesWhatIsNoWord) {
  Frame frame{.type = FrameType::kAtomic,
              .kind = static_cast<std::uint8_t>(AtomicKind::kAdd),
              .width = 8,
              .flags = kWantsAnswer,
              .region = id_,
              .offset = 4,
              .operand = 1};
  ASSERT_TRUE(send(frame).is_ok());
  EXPECT_EQ(answers_.back().type, FrameType::kRefused);
  EXPECT_EQ(answers_.back().flags, kWantsAnswer);
  frame.offset = 8;
  frame.width = 3;
  ASSERT_TRUE(send(frame).is_ok());
  frame.width = 8;
  frame.kind = 99;
  ASSERT_TRUE(send(frame).is_ok());
  EXPECT_EQ(refused(Refusal::kWord), 3u);
  frame.kind = static_cast<std::uint8_t>(AtomicKind::kAdd);
  frame.offset = kBytes - 4;
  ASSERT_TRUE(send(frame).is_ok());
  EXPECT_EQ(refused(Refusal::kBounds), 1u);
  EXPECT_TRUE(is_around_untouched());
  EXPECT_EQ(region(), std::string(kBytes, '\0'));
}

TEST_F(OwnerSideTest, ASignalAfterARefusedPutIsNotSet) {
  ASSERT_TRUE(send(put_at(kBytes), "x").is_ok());
  Frame signal{.type = FrameType::kAtomic,
               .kind = static_cast<std::uint8_t>(AtomicKind::kSet),
               .width = 8,
               .flags = kAfterPut,
               .region = id_,
               .offset = 0,
               .operand = 1};
  ASSERT_TRUE(send(signal).is_ok());
  EXPECT_EQ(region(), std::string(kBytes, '\0'));
  ASSERT_TRUE(send(put_at(16), "x").is_ok());
  ASSERT_TRUE(send(signal).is_ok());
  EXPECT_EQ(region()[0], 1);
}

TEST_F(OwnerSideTest, AGetOfMoreThanAPieceIsRefused) {
  ASSERT_TRUE(send({.type = FrameType::kGet, .region = id_, .length = UINT64_MAX}).is_ok());
  EXPECT_EQ(answers_.back().type, FrameType::kRefused);
  EXPECT_EQ(refused(Refusal::kBounds), 1u);
}

TEST_F(OwnerSideTest, EndsAConnectionThatAnswers) {
  EXPECT_FALSE(send({.type = FrameType::kData, .region = {}}).is_ok());
}

TEST_F(OwnerSideTest, EndsAConnectionThatGreetsAgain) {
  EXPECT_FALSE(send(Hello{.nonce = peer_.nonce()}.frame()).is_ok());
}

}  // namespace
}  // namespace memspan
