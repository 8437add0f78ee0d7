// SPDX-License-Identifier: Apache-2.0
#include "memory/address_plan.h"

#include <gtest/gtest.h>

#include <bit>

namespace memspan {
namespace {

TEST(AddressPlanTest, AStrideHoldsAHeapOfAllMemory) {
  for (std::uint64_t memory :
       {std::uint64_t{1} << 28, std::uint64_t{24} << 30, std::uint64_t{2} << 40}) {
    EXPECT_GE(heap_file_stride(memory), memory + kInternalBytes);
    EXPECT_TRUE(std::has_single_bit(heap_file_stride(memory)));
  }
}

}  // namespace
}  // namespace memspan
