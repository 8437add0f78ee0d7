// SPDX-License-Identifier: Apache-2.0
// The kernels of all reductions, one for each type of element and operation, as functions over
// arrays in vector code. The floating-point types of 16 and 8 bits are computed in float and
// rounded once (narrow_floats.h).
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "core/status.h"
#include "pgas/reduction/wide_kernels.h"

namespace memspan::inline pgas {

// The first 16 have the numbers of memspan_type_t.
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
  kFloat8E4m3fn,
  kFloat8E5m2,
  kLongDouble,
};
inline constexpr int kElementTypes = 17;

// The functions for reductions of one type by one operation. A value.
struct ReductionKernel {
  ElementType type;
  Operator op;
  std::size_t bytes;  // of one element
  Combine combine;    // null when the type has no such operation

  // into[i] = into[i] op from[i]. The arrays do not overlap.
  void accumulate(void* into, const void* from, std::size_t count) const {
    const void* const both[] = {into, from};
    combine(into, both, 2, count);
  }
};

// For numbers of memspan_type_t and memspan_op_t: the kernel for the named instruction set, which
// the processor must have, or for the fastest one that it has. kInvalidArgument: they name no type
// or operation, or the type does not have the operation.
Result<ReductionKernel> reduction_kernel(int type, int op,
                                         std::optional<Instructions> instructions = {});

// The element type of a C type by its kind and size.
template <typename T>
constexpr ElementType element_type_of() {
  if constexpr (std::is_same_v<T, long double>) {
    return ElementType::kLongDouble;
  } else if constexpr (std::is_floating_point_v<T>) {
    return sizeof(T) == 4 ? ElementType::kFloat32 : ElementType::kFloat64;
  } else if constexpr (std::is_integral_v<T>) {
    constexpr int kLogBytes = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return static_cast<ElementType>(2 * kLogBytes + (std::is_signed_v<T> ? 0 : 1));
  } else {
    static_assert(sizeof(T) == 8 || sizeof(T) == 16, "a complex number");
    return sizeof(T) == 8 ? ElementType::kComplex64 : ElementType::kComplex128;
  }
}

// For a type and an operation that exist, known at compile time.
const ReductionKernel& reduction_kernel(ElementType type, Operator op,
                                        std::optional<Instructions> instructions = {});
template <typename T, Operator op>
const ReductionKernel& reduction_kernel() {
  return reduction_kernel(element_type_of<T>(), op);
}

}  // namespace memspan::inline pgas
