// SPDX-License-Identifier: Apache-2.0
#include "store/wire.h"

#include <gtest/gtest.h>

#include "core/bytes.h"
#include "support/whole_answer.h"

namespace memspan {
namespace {

constexpr std::size_t kLengthBytes = 4;

std::string body_of(const std::string& frame) {
  return frame.substr(kLengthBytes);
}

std::string length_prefix(std::uint32_t length) {
  ByteWriter writer;
  writer.u32(length);
  return writer.take();
}

StoreRequest full_request() {
  return {.id = 0x0102030405060708,
          .operation = StoreOperation::kCompareAndSwap,
          .key = std::string("key\0with zero", 13),
          .value = "new",
          .expected = "old",
          .watch = 5,
          .timeout_ms = 1234,
          .rank = 3,
          .size = 4,
          .is_owned = true};
}

StoreAnswer full_answer() {
  return {.id = 7,
          .code = Code::kTimeout,
          .message = "why",
          .value = "value",
          .number = -1,
          .event = StoreEvent::kRemoved,
          .key = "key"};
}

TEST(WireTest, RequestsComeBackAsTheyWere) {
  EXPECT_EQ(*decode_request(body_of(encode(full_request()))), full_request());
  const StoreRequest ping{.id = 9, .operation = StoreOperation::kPing};
  EXPECT_EQ(*decode_request(body_of(encode(ping))), ping);
}

TEST(WireTest, AnswersAndGreetingsComeBackAsTheyWere) {
  EXPECT_EQ(*decode_answer(body_of(encode(full_answer()))), full_answer());
  auto hello = decode_hello(body_of(encode(StoreHello{.member = "PE 3"})));
  ASSERT_TRUE(hello.is_ok());
  EXPECT_EQ(hello->version, kStoreProtocolVersion);
  EXPECT_EQ(hello->release, MEMSPAN_VERSION);
  EXPECT_EQ(hello->member, "PE 3");
  auto welcome =
      decode_welcome(body_of(encode(StoreWelcome{.code = Code::kAuth, .message = "no"})));
  ASSERT_TRUE(welcome.is_ok());
  EXPECT_EQ(welcome->code, Code::kAuth);
  EXPECT_EQ(welcome->message, "no");
}

template <typename Decode>
void expect_only_the_whole_is_read(const std::string& body, Decode decode) {
  for (std::size_t length = 0; length < body.size(); ++length)
    EXPECT_EQ(decode(std::string_view(body).substr(0, length)).code(), Code::kInvalidArgument)
        << length;
  EXPECT_TRUE(decode(body).is_ok());
  EXPECT_FALSE(decode(body + "x").is_ok());
}

TEST(WireTest, RefusesEveryTruncatedAndEveryLongerMessage) {
  expect_only_the_whole_is_read(body_of(encode(full_request())), decode_request);
  expect_only_the_whole_is_read(body_of(encode(full_answer())), decode_answer);
  expect_only_the_whole_is_read(body_of(encode(StoreHello{.member = "me"})), decode_hello);
  expect_only_the_whole_is_read(body_of(encode(StoreWelcome{.message = "hi"})), decode_welcome);
}

TEST(WireTest, SurvivesEveryChangedByte) {
  const std::string body = body_of(encode(full_request()));
  for (std::size_t i = 0; i < body.size(); ++i)
    for (int value = 0; value < 256; ++value) {
      std::string changed = body;
      changed[i] = static_cast<char>(value);
      if (auto request = decode_request(changed); request.is_ok()) {
        EXPECT_EQ(body_of(encode(*request)), changed);
      }
    }
}

TEST(WireTest, RefusesUnknownOperationsAndCodes) {
  StoreRequest request = full_request();
  for (int operation : {0, 4, 5, 8, 15, 19, 255}) {
    request.operation = static_cast<StoreOperation>(operation);
    EXPECT_FALSE(decode_request(body_of(encode(request))).is_ok()) << operation;
  }
  StoreAnswer answer = full_answer();
  answer.code = static_cast<Code>(255);
  EXPECT_FALSE(decode_answer(body_of(encode(answer))).is_ok());
}

TEST(WireTest, ChecksTheSizesOfKeys) {
  auto code_for = [](std::string key) {
    return check_request({.operation = StoreOperation::kSet, .key = std::move(key)}).code();
  };
  EXPECT_EQ(code_for(""), Code::kInvalidArgument);
  EXPECT_EQ(code_for("k"), Code::kOk);
  EXPECT_EQ(code_for(std::string(kMaxKeyBytes, 'k')), Code::kOk);
  EXPECT_EQ(code_for(std::string(kMaxKeyBytes + 1, 'k')), Code::kInvalidArgument);
}

TEST(WireTest, OnlyAPrefixMayBeEmpty) {
  const auto code_for = [](StoreOperation operation) {
    return check_request({.operation = operation}).code();
  };
  EXPECT_EQ(code_for(StoreOperation::kGet), Code::kInvalidArgument);
  EXPECT_EQ(code_for(StoreOperation::kTakeRank), Code::kInvalidArgument);
  EXPECT_EQ(code_for(StoreOperation::kList), Code::kOk);
  EXPECT_EQ(code_for(StoreOperation::kWatch), Code::kOk);
  EXPECT_EQ(code_for(StoreOperation::kUnwatch), Code::kOk);
}

TEST(WireTest, ChecksTheSizesOfValues) {
  StoreRequest request{.operation = StoreOperation::kCompareAndSwap, .key = "k"};
  request.value.assign(kMaxValueBytes, 'v');
  EXPECT_TRUE(check_request(request).is_ok());
  request.value += 'v';
  EXPECT_EQ(check_request(request).code(), Code::kInvalidArgument);
  request.value.swap(request.expected);
  EXPECT_EQ(check_request(request).code(), Code::kInvalidArgument);
}

TEST(WireTest, TheLargestRequestsFitIntoAFrame) {
  StoreRequest request{.operation = StoreOperation::kCompareAndSwap,
                       .key = std::string(kMaxKeyBytes, 'k'),
                       .value = std::string(kMaxValueBytes, 'v'),
                       .expected = std::string(kMaxValueBytes, 'e')};
  EXPECT_TRUE(check_request(request).is_ok());
  EXPECT_LE(encode(request).size(), kMaxFrameBytes);
  EXPECT_LE(encode(StoreHello{.member = std::string(5000, 'm')}).size(), kMaxGreetingBytes);
}

TEST(WireTest, DoesNotBelieveACountOfKeys) {
  ByteWriter writer;
  writer.u64(1);
  writer.u8(static_cast<std::uint8_t>(StoreOperation::kGet));
  writer.u32(0);
  writer.i64(0);
  writer.u32(0);
  writer.u32(0);
  writer.u8(0);
  writer.u32(0xffffffff);
  EXPECT_FALSE(decode_request(writer.bytes()).is_ok());
}

TEST(WireTest, RefusesAStrangersGreeting) {
  EXPECT_FALSE(decode_hello("GET / HTTP/1.1\r\n\r\n").is_ok());
  EXPECT_FALSE(decode_welcome("SSH-2.0-OpenSSH_9.2p1").is_ok());
}

TEST(WireTest, ReadsTheVersionOfALongerGreeting) {
  const std::string body = body_of(encode(StoreHello{.version = 99, .member = "later"})) + "more";
  auto hello = decode_hello(body);
  ASSERT_TRUE(hello.is_ok());
  EXPECT_EQ(hello->version, 99U);
}

TEST(WireTest, QuotesKeysForMessages) {
  EXPECT_EQ(quoted_key("a"), "\"a\"");
  EXPECT_EQ(quoted_key(std::string("b\n\0", 3)), "\"b??\"");
  EXPECT_EQ(quoted_key(std::string(100, 'x')), "\"" + std::string(64, 'x') + "...\"");
}

TEST(FrameReaderTest, FindsTheFramesInEverySplit) {
  const std::string stream = encode(full_request()) + encode(full_answer());
  for (std::size_t first = 0; first <= stream.size(); ++first)
    for (std::size_t second = first; second <= stream.size(); second += 7) {
      StoreFrameReader reader(kMaxFrameBytes);
      std::vector<std::string> bodies;
      for (auto piece :
           {stream.substr(0, first), stream.substr(first, second - first), stream.substr(second)}) {
        reader.feed(piece);
        while (auto body = reader.next()) bodies.emplace_back(*body);
      }
      ASSERT_EQ(bodies,
                (std::vector{body_of(encode(full_request())), body_of(encode(full_answer()))}));
    }
}

TEST(FrameReaderTest, FindsTheFramesByteByByte) {
  StoreFrameReader reader(kMaxFrameBytes);
  int frames = 0;
  for (char byte : encode(full_request()) + encode(full_answer())) {
    reader.feed({&byte, 1});
    while (reader.next()) ++frames;
  }
  EXPECT_EQ(frames, 2);
  EXPECT_FALSE(reader.is_broken());
}

TEST(FrameReaderTest, WaitsForTheRestOfAFrame) {
  StoreFrameReader reader(100);
  reader.feed(length_prefix(3));
  EXPECT_FALSE(reader.next());
  reader.feed("ab");
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.is_broken());
  reader.feed("c");
  EXPECT_EQ(reader.next(), "abc");
  EXPECT_FALSE(reader.next());
}

TEST(FrameReaderTest, IsBrokenForGoodByALengthOfZero) {
  StoreFrameReader reader(100);
  reader.feed(length_prefix(0));
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.is_broken());
  reader.feed(length_prefix(1) + "x");
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.is_broken());
}

TEST(FrameReaderTest, TakesTheLimitAndNoByteMore) {
  StoreFrameReader reader(5);
  reader.feed(length_prefix(5) + "12345" + length_prefix(6));
  EXPECT_EQ(reader.next(), "12345");
  EXPECT_FALSE(reader.is_broken());
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.is_broken());
}

TEST(FrameReaderTest, TakesLongerFramesAfterTheLimitWasRaised) {
  StoreFrameReader reader(1);
  reader.feed(length_prefix(1) + "a" + length_prefix(2) + "bc");
  EXPECT_EQ(reader.next(), "a");
  reader.set_limit(2);
  EXPECT_EQ(reader.next(), "bc");
}

}  // namespace
}  // namespace memspan
