// SPDX-License-Identifier: Apache-2.0
#include "core/random.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace memspan {
namespace {

TEST(RandomTest, NumbersDifferInAllTheirBits) {
  std::uint64_t ones = 0;
  std::uint64_t zeros = 0;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t number = random_number();
    ones |= number;
    zeros |= ~number;
    seen.insert(number);
  }
  EXPECT_EQ(ones, UINT64_MAX);
  EXPECT_EQ(zeros, UINT64_MAX);
  EXPECT_EQ(seen.size(), 200u);
}

TEST(RandomTest, TextHasTwoDigitsForAByte) {
  EXPECT_EQ(random_hex(5).size(), 10u);
  EXPECT_EQ(random_hex(8).find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(random_hex(8), random_hex(8));
}

}  // namespace
}  // namespace memspan
