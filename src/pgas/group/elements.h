// SPDX-License-Identifier: Apache-2.0
// Elements of a type combined by an operator, member after member, in one pass over the result.
// The half types are computed in float and rounded once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"

namespace memspan::pgas {

enum class ElementType : std::uint8_t {
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
};
enum class Operator : std::uint8_t { kSum, kProduct, kMin, kMax, kAnd, kOr, kXor, kAverage };

// What one of a type and an operator is. A value.
struct Elements {
  // `result` may be one of the sources. Every source has `count` elements.
  using Combine = void (*)(void* result, const void* const sources[], int members,
                           std::size_t count);
  ElementType type;
  Operator op;
  std::size_t bytes;  // of one element
  Combine combine;
};

// kInvalidArgument when the numbers name no type or operator, or the operator is not one of the
// type.
Result<Elements> elements_of(int type, int op);

// IEEE 754 binary16 and the upper half of a float; to the nearest, ties to even.
float float_of_half(std::uint16_t half);
std::uint16_t half_of_float(float value);
float float_of_bfloat16(std::uint16_t half);
std::uint16_t bfloat16_of_float(float value);

}  // namespace memspan::pgas
