// SPDX-License-Identifier: Apache-2.0
// Rows of elements of any of the four types to float or double, and back.
#pragma once

#include <cstddef>

#include "element_type.h"
#include "half.h"

namespace matmul {

// Not for int32, whose values do not all fit.
void widen_to_float(ElementType type, const void* from, float* to, std::size_t count);
// Exact for all four types.
void widen_to_double(ElementType type, const void* from, double* to, std::size_t count);
// Rounds floats to a floating point type; kFloat copies.
void round_to_type(ElementType type, const float* from, void* to, std::size_t count);

// sum[i] += values[i]: floats, or int32 modulo 2^32, by the type's partial products.
void add_partials(ElementType type, const void* values, void* sum, std::size_t count);
// Sums of partial products to results: rounded for the 16-bit types, copied for the others.
void finish_partials(ElementType type, const void* sums, void* to, std::size_t count);

}  // namespace matmul
