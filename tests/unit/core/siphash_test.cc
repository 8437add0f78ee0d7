// SPDX-License-Identifier: Apache-2.0
#include "core/siphash.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace memspan {
namespace {

// Of the bytes 0, 1, 2 … with the key 00 01 … 0f: 15 as its authors print it, the others as
// "openssl mac" gives them.
TEST(SipHashTest, GivesWhatOthersGive) {
  const SipKey key = SipKey::from_hex("000102030405060708090a0b0c0d0e0f").value();
  const std::vector<std::pair<std::size_t, std::uint64_t>> known{
      {0, 0x726f'db47'dd0e'0e31},  {1, 0x74f8'39c5'93dc'67fd},  {7, 0xab02'00f5'8b01'd137},
      {8, 0x93f5'f579'9a93'2462},  {9, 0x9e00'82df'0ba9'e4b0},  {15, 0xa129'ca61'49be'45e5},
      {16, 0x3f2a'cc7f'57c2'9bdb}, {60, 0x6ca4'ecb1'5c5f'91e1}, {63, 0x958a'324c'eb06'4572},
      {64, 0xacd2'c40b'8502'cad8}};
  for (const auto& [size, hash] : known) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i);
    EXPECT_EQ(siphash(key, bytes), hash) << size;
  }
}

TEST(SipHashTest, AKeyIs32Digits) {
  EXPECT_EQ(SipKey::from_hex("01000000000000000200000000000080"),
            (SipKey{1, 0x8000'0000'0000'0002}));
  for (const char* text : {"", "01", "0100000000000000020000000000008",
                           "-1000000000000000200000000000080", "010000000000000002000000000000800",
                           "0x000000000000000200000000000080", "0100000000000000020000000000008g"})
    EXPECT_FALSE(SipKey::from_hex(text)) << text;
}

}  // namespace
}  // namespace memspan
