// SPDX-License-Identifier: Apache-2.0
#include "node/mapper_table.h"

#include <gtest/gtest.h>

namespace memspan {
namespace {

constexpr std::uint32_t kRanks = 5;
constexpr std::uint64_t kOld = 7, kNew = 8;

// The owner's table and another member's view of it.
struct TwoViews {
  MapperTable owner = MapperTable::create(kRanks).value();
  MapperTable other = MapperTable::open(owner.duplicate().value(), kRanks).value();
};

TEST(MapperTableTest, HasAWordForEachRank) {
  TwoViews table;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(table.owner.mapped_by(rank), 0U);
    EXPECT_EQ(table.other.admitted(rank), 0U);
  }
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    table.other.set_mapped(rank, 10 + rank);
    table.owner.admit(rank, 20 + rank);
  }
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(table.owner.mapped_by(rank), 10 + rank);
    EXPECT_EQ(table.other.admitted(rank), 20 + rank);
  }
}

TEST(MapperTableTest, AnAdmissionEndsWithItsJoin) {
  TwoViews table;
  const Admission old = table.other.admission(2, kOld);
  EXPECT_FALSE(old.is_valid());
  table.owner.admit(2, kOld);
  EXPECT_TRUE(old.is_valid());
  table.owner.admit(2, MapperTable::kEnded);
  EXPECT_FALSE(old.is_valid());
  table.owner.admit(2, kNew);
  EXPECT_FALSE(old.is_valid());
  EXPECT_TRUE(table.other.admission(2, kNew).is_valid());
  EXPECT_TRUE(Admission::of_owner().is_valid());
}

TEST(MapperTableTest, AFormerMemberClearsNothingOfItsSuccessor) {
  TwoViews table;
  table.other.set_mapped(2, kOld);
  table.other.set_mapped(2, kNew);
  table.other.clear_mapped(2, kOld);
  EXPECT_EQ(table.owner.mapped_by(2), kNew);
  table.other.clear_mapped(2, kNew);
  EXPECT_EQ(table.owner.mapped_by(2), 0U);
}

TEST(MapperTableTest, RefusesMemoryThatIsTooSmall) {
  const MapperTable small = MapperTable::create(1).value();
  EXPECT_EQ(MapperTable::open(small.duplicate().value(), 1 << 20).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace memspan
