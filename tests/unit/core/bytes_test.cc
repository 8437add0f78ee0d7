// SPDX-License-Identifier: Apache-2.0
#include "core/bytes.h"

#include <gtest/gtest.h>

namespace memspan {
namespace {

std::string sample() {
  ByteWriter writer;
  writer.u8(7);
  writer.u32(0x01020304);
  writer.u64(0x1122334455667788);
  writer.i64(-5);
  writer.text("hello");
  return writer.take();
}

TEST(BytesTest, ReadsBackWhatWasWritten) {
  std::string bytes = sample();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.u8(), 7);
  EXPECT_EQ(reader.u32(), 0x01020304u);
  EXPECT_EQ(reader.u64(), 0x1122334455667788u);
  EXPECT_EQ(reader.i64(), -5);
  EXPECT_EQ(reader.text(), "hello");
  EXPECT_TRUE(reader.is_finished());
}

TEST(BytesTest, NumbersAreLittleEndian) {
  ByteWriter writer;
  writer.u32(0x01020304);
  EXPECT_EQ(writer.bytes(), std::string("\x04\x03\x02\x01"));
}

TEST(BytesTest, EveryTruncationIsNoticedAndGivesNothing) {
  std::string bytes = sample();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    ByteReader reader(std::string_view(bytes).substr(0, length));
    reader.u8();
    reader.u32();
    reader.u64();
    reader.i64();
    EXPECT_EQ(reader.text(), "") << length;
    EXPECT_FALSE(reader.is_ok()) << length;
    EXPECT_EQ(reader.u64(), 0u);
  }
}

TEST(BytesTest, ATextLongerThanTheMessageIsRefused) {
  ByteWriter writer;
  writer.u32(0xffffffff);
  std::string bytes = writer.take();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.text(), "");
  EXPECT_FALSE(reader.is_ok());
}

}  // namespace
}  // namespace memspan
