// SPDX-License-Identifier: Apache-2.0
#include "transport/message/frame_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace memspan {
namespace {

constexpr SipKey kSecret{1, 2};

struct Memory final : FrameSink {
  Status begin(const Frame&) override { return Status::ok(); }
  std::byte* pin() override { return bytes.data(); }
  void unpin() override {}
  Status end(const Frame&) override {
    ++frames;
    return Status::ok();
  }
  alignas(8) std::array<std::byte, 4096> bytes{};
  int frames = 0;
};

class FrameReaderTest : public testing::Test {
 protected:
  FrameReaderTest() {
    give(Frame{.type = FrameType::kHello,
               .region = {},
               .operand = sender_.nonce().low,
               .compare = sender_.nonce().high},
         {});
  }

  // The bytes of the next frame.
  std::vector<std::byte> make(const Frame& frame, const std::vector<std::byte>& payload) {
    FrameHeader header;
    encode(frame, header);
    sender_.seal(header, sequence_++);
    std::vector<std::byte> bytes(header.begin(), header.end());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return bytes;
  }
  std::vector<std::byte> make_put(std::size_t bytes) {
    return make(
        {.type = FrameType::kPut, .payload = static_cast<std::uint32_t>(bytes), .region = {1, 1}},
        std::vector<std::byte>(bytes, std::byte{0xff}));
  }
  void give(const Frame& frame, const std::vector<std::byte>& payload) {
    arrive(make(frame, payload));
  }
  // As if the stream delivered just these.
  void arrive(std::vector<std::byte> bytes) {
    std::array<iovec, 2> places;
    for (std::size_t done = 0; done < bytes.size();) {
      const std::size_t count = reader_.prepare(places);
      std::size_t all = 0;
      for (std::size_t i = 0; i < count && done < bytes.size(); ++i) {
        const std::size_t part = std::min(places[i].iov_len, bytes.size() - done);
        std::memcpy(places[i].iov_base, bytes.data() + done, part);
        done += part;
        all += part;
      }
      ASSERT_TRUE(reader_.received(all).is_ok());
    }
  }
  std::size_t stored() const {
    return static_cast<std::size_t>(
        std::count(memory_.bytes.begin(), memory_.bytes.end(), std::byte{0xff}));
  }

  Session sender_ = Session::connecting(kSecret);
  std::uint32_t sequence_ = 0;
  Session receiver_ = Session::accepting(kSecret);
  Memory memory_;
  FrameReader reader_{memory_, receiver_};
};

TEST_F(FrameReaderTest, WordsAreStoredWhenAllOfThemHaveArrived) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{24}, kMostWords})
    for (std::size_t first = 1; first < kFrameBytes + bytes; ++first) {
      memory_.bytes.fill(std::byte{0});
      const int before = memory_.frames;
      const std::vector<std::byte> frame = make_put(bytes);
      const auto cut = frame.begin() + static_cast<std::ptrdiff_t>(first);
      arrive({frame.begin(), cut});
      EXPECT_EQ(stored(), 0U) << first << " of " << bytes;
      arrive({cut, frame.end()});
      EXPECT_EQ(stored(), bytes);
      EXPECT_EQ(memory_.frames, before + 1);
    }
}

TEST_F(FrameReaderTest, LongerPayloadsAreStoredAsTheyArrive) {
  const std::vector<std::byte> frame = make_put(kMostWords + 1);
  arrive({frame.begin(), frame.end() - 1});
  EXPECT_EQ(stored(), kMostWords);
  arrive({frame.end() - 1, frame.end()});
  EXPECT_EQ(stored(), kMostWords + 1);
}

TEST_F(FrameReaderTest, ManyFramesArriveTogetherAndByteByByte) {
  std::vector<std::byte> all;
  for (const std::size_t bytes : {8, 100, 64, 65, 3000, 1, 8}) {
    const std::vector<std::byte> one = make_put(bytes);
    all.insert(all.end(), one.begin(), one.end());
  }
  const int before = memory_.frames;
  arrive(all);
  EXPECT_EQ(memory_.frames, before + 7);
  for (const std::size_t bytes : {8, 100, 64})
    for (const std::byte byte : make_put(bytes)) arrive({byte});
  EXPECT_EQ(memory_.frames, before + 10);
}

TEST(WordsTest, EachBytesComesOnceWhateverTheAddressAndSize) {
  alignas(8) std::array<std::byte, 96> to;
  std::array<std::byte, 96> from;
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i + 1);
  for (std::size_t offset = 0; offset < 9; ++offset)
    for (std::size_t bytes = 0; bytes <= kMostWords; ++bytes) {
      to.fill(std::byte{0});
      copy_words<Words::kStored>(to.data() + offset, from.data(), bytes);
      EXPECT_EQ(std::memcmp(to.data() + offset, from.data(), bytes), 0);
      EXPECT_EQ(std::count(to.begin(), to.end(), std::byte{0}),
                static_cast<std::ptrdiff_t>(to.size() - bytes));
      std::array<std::byte, 96> back{};
      copy_words<Words::kLoaded>(back.data(), to.data() + offset, bytes);
      EXPECT_EQ(std::memcmp(back.data(), from.data(), bytes), 0);
    }
}

}  // namespace
}  // namespace memspan
