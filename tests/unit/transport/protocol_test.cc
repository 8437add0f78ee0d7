// SPDX-License-Identifier: Apache-2.0
#include "transport/message/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memspan {
namespace {

using testing::HasSubstr;

Frame full_frame() {
  return {FrameType::kPut, 1, 8, kWantsAnswer, 4096, 0x1122334455667788, {7, 9}, 1, 2, 3,
          UINT64_MAX};
}

TEST(ProtocolTest, AFrameIsReadAsItWasWritten) {
  FrameHeader header;
  encode(full_frame(), header);
  EXPECT_EQ(decode(header).value(), full_frame());
}

TEST(ProtocolTest, RefusesWhatIsNoFrame) {
  FrameHeader good;
  encode(full_frame(), good);
  const auto with = [&](std::size_t at, int value) {
    FrameHeader bad = good;
    bad[at] = static_cast<std::byte>(value);
    return decode(bad).status();
  };
  EXPECT_THAT(with(0, 0).message(), HasSubstr("its type is 0"));
  EXPECT_THAT(with(0, 200).message(), HasSubstr("its type is 200"));
  EXPECT_THAT(with(3, 0x80).message(), HasSubstr("its flags"));
  EXPECT_THAT(with(7, 0x7f).message(), HasSubstr("its payload"));
  // A flush has no payload.
  EXPECT_EQ(with(0, static_cast<int>(FrameType::kFlush)).code(), Code::kInvalidArgument);
}

TEST(ProtocolTest, AGreetingIsReadAsItWasWritten) {
  const Hello hello{12, "PE 12 on host b", {5, 6}, 7, true, 9, "1.2.3"};
  const std::string text = hello.payload();
  const auto payload = std::as_bytes(std::span(text));
  const Hello read = Hello::read(hello.frame(), payload).value();
  EXPECT_EQ(read.peer, 12);
  EXPECT_EQ(read.name, "PE 12 on host b");
  EXPECT_EQ(read.nonce, hello.nonce);
  EXPECT_EQ(read.proof, 7U);
  EXPECT_TRUE(read.is_apart);
  EXPECT_EQ(read.protocol, 9U);
  EXPECT_EQ(read.version, "1.2.3");
  Frame nobody = hello.frame();
  nobody.tag = std::uint64_t{1} << 31;
  EXPECT_THAT(Hello::read(nobody, payload).status().message(), HasSubstr("number is 2147483648"));
  const Hello long_name{1, std::string(2 * kMostText, 'x')};
  EXPECT_EQ(long_name.frame().payload, kMostText);
}

}  // namespace
}  // namespace memspan
