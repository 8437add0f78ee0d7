// SPDX-License-Identifier: Apache-2.0
// 16-bit floating point numbers to float and back, one at a time and in bulk.
//
// Rounding is to nearest, ties to even; NaNs stay NaNs (made quiet). All three implementations
// give the same bits for every input.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simd.h"

namespace matmul {

float fp16_to_float(std::uint16_t bits);
std::uint16_t float_to_fp16(float value);
float bf16_to_float(std::uint16_t bits);
std::uint16_t float_to_bf16(float value);

void fp16_to_float(const std::uint16_t* from, float* to, std::size_t count,
                   Simd simd = best_simd());
void float_to_fp16(const float* from, std::uint16_t* to, std::size_t count,
                   Simd simd = best_simd());
void bf16_to_float(const std::uint16_t* from, float* to, std::size_t count,
                   Simd simd = best_simd());
void float_to_bf16(const float* from, std::uint16_t* to, std::size_t count,
                   Simd simd = best_simd());

// Each fp16 number is exactly high + low, two bf16 numbers: high is the nearest bf16 number, and
// the rest has at most three bits. Infinities and NaNs have low 0.
void fp16_to_bf16_pair(const std::uint16_t* from, std::uint16_t* high, std::uint16_t* low,
                       std::size_t count, Simd simd = best_simd());

}  // namespace matmul
