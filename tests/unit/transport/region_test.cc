// SPDX-License-Identifier: Apache-2.0
#include "transport/link.h"

#include <gtest/gtest.h>

namespace memspan {
namespace {

TEST(RegionTest, IsReadAsItWasWritten) {
  const RemoteRegion region{{3, 77}, 1 << 20, MemoryKind::kDevice, std::string("k\0y", 3)};
  EXPECT_EQ(RemoteRegion::decode(region.encode()).value(), region);
}

TEST(RegionTest, RefusesWhatIsNoDescription) {
  const std::string good = RemoteRegion{{3, 77}, 4096, MemoryKind::kHost, "key"}.encode();
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(RemoteRegion::decode(std::string_view(good).substr(0, length)).is_ok()) << length;
  EXPECT_FALSE(RemoteRegion::decode(good + "x").is_ok());
  EXPECT_FALSE(RemoteRegion::decode(RemoteRegion{{0, 77}, 1, {}, ""}.encode()).is_ok());
  EXPECT_FALSE(RemoteRegion::decode(RemoteRegion{{3, 0}, 1, {}, ""}.encode()).is_ok());
}

TEST(RegionTest, ContainsWithoutOverflow) {
  const RemoteRegion region{{1, 1}, 100, MemoryKind::kHost, ""};
  EXPECT_TRUE(region.contains(0, 100));
  EXPECT_TRUE(region.contains(100, 0));
  EXPECT_FALSE(region.contains(1, 100));
  EXPECT_FALSE(region.contains(101, 0));
  EXPECT_FALSE(region.contains(UINT64_MAX, 1));
  EXPECT_FALSE(region.contains(1, UINT64_MAX));
}

}  // namespace
}  // namespace memspan
