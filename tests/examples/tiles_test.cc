// SPDX-License-Identifier: Apache-2.0
#include "tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace matmul {
namespace {

TEST(TilePlanTest, TilesCoverEveryElementOnce) {
  const Shape shapes[] = {{1, 1, 1},      {7, 5, 13},   {129, 3, 257},
                          {513, 1, 1025}, {1, 1, 3000}, {3000, 1, 1}};
  for (const Shape& shape : shapes) {
    for (std::uint64_t ranks : {1, 2, 3, 8, 64}) {
      TilePlan plan(shape, ranks);
      std::vector<int> covered(shape.m * shape.n);
      for (std::uint64_t number = 0; number < plan.tiles(); ++number) {
        Tile tile = plan.tile(number);
        ASSERT_GT(tile.elements(), 0u);
        ASSERT_LE(tile.elements(), plan.slot_elements());
        for (std::uint64_t row = 0; row < tile.rows; ++row)
          for (std::uint64_t column = 0; column < tile.columns; ++column)
            ++covered[(tile.row + row) * shape.n + tile.column + column];
      }
      ASSERT_TRUE(std::all_of(covered.begin(), covered.end(), [](int n) { return n == 1; }))
          << shape.m << "x" << shape.n << " on " << ranks;
    }
  }
}

TEST(TilePlanTest, OwnersShareTheTilesEvenly) {
  for (std::uint64_t ranks : {1, 2, 3, 7, 64}) {
    TilePlan plan({1024, 16, 8192}, ranks);
    std::vector<std::uint64_t> owned(ranks);
    for (std::uint64_t number = 0; number < plan.tiles(); ++number) ++owned[plan.owner(number)];
    for (std::uint64_t rank = 0; rank < ranks; ++rank) EXPECT_EQ(owned[rank], plan.owned_by(rank));
    EXPECT_LE(*std::max_element(owned.begin(), owned.end()),
              *std::min_element(owned.begin(), owned.end()) + 1);
  }
}

TEST(TilePlanTest, NoTwoContributionsShareASlot) {
  for (std::uint64_t ranks : {1, 2, 3, 7}) {
    TilePlan plan({1024, 16, 1000}, ranks);
    std::vector<std::set<std::uint64_t>> used(ranks);
    for (std::uint64_t number = 0; number < plan.tiles(); ++number)
      for (std::uint64_t source = 0; source < ranks; ++source) {
        std::uint64_t slot = plan.slot(number, source);
        EXPECT_LT(slot, plan.slots());
        EXPECT_TRUE(used[plan.owner(number)].insert(slot).second);
      }
  }
}

TEST(TilePlanTest, StagingStaysNearOneMatrixOfPartialProducts) {
  for (std::uint64_t ranks : {2, 3, 8, 64}) {
    TilePlan plan({4096, 1, 8192}, ranks);
    double staging = static_cast<double>(plan.slots() * plan.slot_elements());
    EXPECT_LT(staging, 1.25 * 4096 * 8192) << ranks;
  }
}

}  // namespace
}  // namespace matmul
