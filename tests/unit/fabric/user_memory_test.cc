// SPDX-License-Identifier: Apache-2.0
#include "fabric/user_memory.h"

#include <gtest/gtest.h>

namespace memspan {
namespace {

TEST(UserMemoryTest, KeepsRangesThatOverlap) {
  UserMemory memory;
  EXPECT_TRUE(memory.add(4096, 8192).is_ok());
  EXPECT_TRUE(memory.add(8192, 8192).is_ok());
  EXPECT_TRUE(memory.add(4096, 8192).is_ok());
  EXPECT_EQ(memory.add(4096, 8191).code(), Code::kUnavailable);
  memory.remove(4096);
  EXPECT_TRUE(memory.add(4096, 8191).is_ok());
}

TEST(UserMemoryTest, RefusesWhatIsNoRange) {
  UserMemory memory;
  EXPECT_EQ(memory.add(0, 1).code(), Code::kInvalidArgument);
  EXPECT_EQ(memory.add(1, 0).code(), Code::kInvalidArgument);
  EXPECT_EQ(memory.add(1, kMostUserBytes + 1).code(), Code::kInvalidArgument);
  EXPECT_EQ(memory.add(UINT64_MAX - 5, 6).code(), Code::kInvalidArgument);
  EXPECT_TRUE(memory.add(1, kMostUserBytes).is_ok());
  memory.remove(12345);
}

}  // namespace
}  // namespace memspan
