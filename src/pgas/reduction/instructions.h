// SPDX-License-Identifier: Apache-2.0
// The instruction sets with kernels. All kernels give the same bits: none contracts products and
// sums.
#pragma once

#include <cstdint>

namespace memspan::pgas {

enum class Instructions : std::uint8_t {
  kBaseline,
  kAvx2,       // with F16C
  kAvx512,     // F, BW, DQ and VL
  kAvx512Bf16  // also with BF16
};
inline constexpr int kInstructionSets = 4;

// The best set of this processor.
Instructions best_instructions();

}  // namespace memspan::pgas
