// SPDX-License-Identifier: Apache-2.0
#include "pgas/group/process_group.h"

#include <gtest/gtest.h>

#include <vector>

namespace memspan::inline pgas {
namespace {

TEST(StageWritesTest, WritesTheBytesWhateverTheWay) {
  StageWrites stage;
  std::vector<char> from(100'000, 'x');
  constexpr std::uint32_t kCalls = StageWrites::kCold + CopyChoice::kTries * CopyChoice::kMostWays;
  int kept = 0;
  for (std::uint32_t call = 0; call < kCalls; ++call) {
    std::vector<char> to(from.size() + 1, 'g');
    stage.begin(2, from.size());
    stage.write(to.data(), from.data(), from.size());
    stage.write(to.data(), nullptr, 0);
    stage.order();
    stage.pause();
    stage.resume();
    stage.end();
    if (to.back() == 'g') ++kept;
    to.pop_back();
    ASSERT_EQ(to, from);
  }
  EXPECT_EQ(kept, static_cast<int>(kCalls));
}

}  // namespace
}  // namespace memspan::inline pgas
