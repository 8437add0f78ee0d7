// SPDX-License-Identifier: Apache-2.0
#include "world/introduction.h"

#include <gtest/gtest.h>

namespace memspan {
namespace {

TEST(IntroductionTest, IsReadBackAsItWasWritten) {
  Introduction mine;
  mine.process = 77;
  mine.heap_bytes = 1 << 20;
  mine.commit_mode = 1;
  mine.program = 0x1234'5678'9abc'def0;
  mine.address = std::string("unix:\0name", 10);
  mine.heap = RemoteRegion{{1, 9}, 1 << 20, MemoryKind::kHost, "key"};
  const auto read = Introduction::decode(mine.encode());
  ASSERT_TRUE(read.is_ok());
  EXPECT_EQ(read->process, 77);
  EXPECT_EQ(read->program, mine.program);
  EXPECT_EQ(read->address, mine.address);
  EXPECT_EQ(read->heap, mine.heap);
  EXPECT_FALSE(read->data.has_value());
}

TEST(IntroductionTest, RefusesAnythingElse) {
  Introduction mine;
  mine.heap.id = {1, 1};
  const std::string good = mine.encode();
  ASSERT_TRUE(Introduction::decode(good).is_ok());
  for (const std::string& text :
       {std::string(), std::string("x"), std::string(40, '\xff'), good.substr(2), good + "0"})
    EXPECT_EQ(Introduction::decode(text).code(), Code::kInvalidArgument) << text;
}

}  // namespace
}  // namespace memspan
