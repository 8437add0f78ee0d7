// SPDX-License-Identifier: Apache-2.0
// Kernels of the types of narrow_floats.h for one instruction set each: every element is loaded,
// widened, combined, narrowed and stored in one pass, in registers.
//
// avx2.cc, avx512.cc and avx512_bf16.cc are compiled for their instruction sets. So they call no
// inline function that other files may also call: the linker keeps one of several copies, which
// could be theirs, and other processors would run it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memspan::inline pgas {

enum class Operator : std::uint8_t { kSum, kProduct, kMin, kMax, kAnd, kOr, kXor, kAverage };
inline constexpr int kOperators = 8;

// Member after member, in one pass over the result, which may be one of the sources. Every source
// has `count` elements.
using Combine = void (*)(void* result, const void* const sources[], int members, std::size_t count);

// The instruction sets with kernels. All kernels give the same bits: none contracts products and
// sums.
enum class Instructions : std::uint8_t {
  kBaseline,
  kAvx2,       // with F16C
  kAvx512,     // F, BW, DQ and VL
  kAvx512Bf16  // also with BF16
};
inline constexpr int kInstructionSets = 4;

// The best set of this processor.
Instructions best_instructions();

struct Avx2;
template <Instructions kSet>
struct Avx512;

// Instantiated in the file of the instruction set.
template <typename Stored, typename Set>
struct WideKernels {
  template <Operator op>
  static void combine(void* result, const void* const sources[], int members, std::size_t count);
  // All that exist, which instantiates them.
  static const Combine kAll[];
};

}  // namespace memspan::inline pgas
