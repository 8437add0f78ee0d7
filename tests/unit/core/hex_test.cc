// SPDX-License-Identifier: Apache-2.0
#include "core/random.h"

#include <gtest/gtest.h>

namespace memspan {
namespace {

TEST(HexTest, ComesBack) {
  const std::string bytes("\0\x01 tcp://[::1]:1\xff", 18);
  EXPECT_EQ(to_hex(bytes).substr(0, 6), "000120");
  EXPECT_EQ(from_hex(to_hex(bytes)), bytes);
  EXPECT_EQ(from_hex(""), std::string());
}

TEST(HexTest, NothingElseIsRead) {
  for (const char* text : {"0", "0g", "AB", " 0", "0x00"})
    EXPECT_EQ(from_hex(text), std::nullopt) << text;
}

}  // namespace
}  // namespace memspan
