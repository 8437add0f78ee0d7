// SPDX-License-Identifier: Apache-2.0
// The instruction sets that there are kernels for. The bits are the same with each: no kernel
// contracts products and sums.
#pragma once

#include <cstdint>

namespace memspan::pgas {

enum class Instructions : std::uint8_t {
  kBaseline,
  kAvx2,       // with F16C
  kAvx512,     // F, BW, DQ and VL
  kAvx512Bf16  // with BF16, too
};
inline constexpr int kInstructionSets = 4;

// What this processor has.
Instructions best_instructions();

}  // namespace memspan::pgas
