// SPDX-License-Identifier: Apache-2.0
// The types of <memspan/kernel.h>, which its back ends share. C++17. memspan's own.
#ifndef MEMSPAN_KERNEL_TYPES_H
#define MEMSPAN_KERNEL_TYPES_H

#include <cstddef>
#include <cstdint>

// Before a kernel, before a function that kernels call, and before one that host code also calls:
// CUDA's words, and nothing where kernels are functions.
#if defined __CUDACC__
#define MEMSPAN_GLOBAL __global__
#define MEMSPAN_DEVICE __device__
#define MEMSPAN_HOST_DEVICE __host__ __device__
#else
#define MEMSPAN_GLOBAL
#define MEMSPAN_DEVICE
#define MEMSPAN_HOST_DEVICE
#endif

namespace memspan::kernel {

// The threads that make one call together, with the same arguments.
enum class Scope { kThread, kWarp, kBlock };

enum class Compare : int { kEqual, kNotEqual, kGreater, kGreaterEqual, kLess, kLessEqual };
enum class SignalOp : int { kSet = 0, kAdd = 1 };

// A number of <aclshmem.h>.
using Team = int;
inline constexpr Team kWorld = 0;

// No index.
inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// `rows` rows of `length` elements, whose beginnings are so many elements apart.
struct Rows {
  std::size_t rows;
  std::size_t length;
  std::ptrdiff_t source_pitch;
  std::ptrdiff_t dest_pitch;
};

namespace backend {

// The same in bytes.
struct ByteRows {
  std::size_t rows;
  std::size_t bytes;
  std::ptrdiff_t source_pitch;
  std::ptrdiff_t dest_pitch;
};

}  // namespace backend

}  // namespace memspan::kernel

#endif  // MEMSPAN_KERNEL_TYPES_H
