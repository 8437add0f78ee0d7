// SPDX-License-Identifier: Apache-2.0
// Share Memory in kernels: words and sizes. C++17; names and values are MemFabric's.
#ifndef MEMSPAN_SMEM_SHM_AICORE_BASE_DEFINE_H
#define MEMSPAN_SMEM_SHM_AICORE_BASE_DEFINE_H

#include <cstdint>

#include "../../aclshmem/device/ascendc.h"

#define SMEM_SHM_INLINE_AICORE __attribute__((always_inline)) inline __aicore__

constexpr std::int32_t BUFFER_NUM = 1;
constexpr std::uint32_t SMEM_SHM_ALIGN_SIZE = 32;

// To the multiple of `al` at or below, and at or above.
#define SMEM_SHM_ALIGN_DOWN(val, al) ((val) / (al) * (al))
#define SMEM_SHM_ALIGN_UP(val, al) (((val) + (al)-1) / (al) * (al))

// Once for each type of elements.
#define SMEM_SHM_TYPE_FUNC(fun) \
  fun(int);                     \
  fun(int8_t);                  \
  fun(int16_t);                 \
  fun(int64_t);                 \
  fun(float);                   \
  fun(float16_t);               \
  fun(bfloat16_t);              \
  fun(half)

#endif  // MEMSPAN_SMEM_SHM_AICORE_BASE_DEFINE_H
