// SPDX-License-Identifier: Apache-2.0
#include "transport/message/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memspan {
namespace {

using testing::HasSubstr;

TEST(FaultsTest, ReadsAllOfThem) {
  const auto faults = Faults::parse("delay=2ms,reorder=500us,cut-after=100,silent-after=7").value();
  EXPECT_EQ(faults->delay, std::chrono::milliseconds(2));
  EXPECT_EQ(faults->reorder, std::chrono::microseconds(500));
  EXPECT_EQ(faults->cut_after, 100u);
  EXPECT_EQ(faults->silent_after, 7u);
  EXPECT_TRUE(faults->is_any());
  EXPECT_GE(faults->hold(), faults->delay);
  EXPECT_LE(faults->hold(), faults->delay + faults->reorder);
  EXPECT_FALSE(Faults::parse("").value()->is_any());
}

TEST(FaultsTest, NamesWhatIsWrongAndWhatIsAllowed) {
  for (const char* text : {"delay", "delay=", "delay=2", "delay=2min", "rain=1", "cut-after=0",
                           "cut-after=x", "delay=2ms,,"}) {
    const auto faults = Faults::parse(text);
    EXPECT_EQ(faults.code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(faults.status().message(), HasSubstr("allowed are delay=TIME")) << text;
  }
}

}  // namespace
}  // namespace memspan
