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

namespace memspan::pgas {

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

// Instantiated in the file of `Vectors`. The functions are ReductionKernel::Combine.
template <typename Stored, typename Vectors>
struct WideKernels {
  static void sum(void* result, const void* const sources[], int members, std::size_t count);
  static void product(void* result, const void* const sources[], int members, std::size_t count);
  static void min(void* result, const void* const sources[], int members, std::size_t count);
  static void max(void* result, const void* const sources[], int members, std::size_t count);
  static void average(void* result, const void* const sources[], int members, std::size_t count);
};

}  // namespace memspan::pgas
