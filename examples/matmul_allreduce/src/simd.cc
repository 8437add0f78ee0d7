// SPDX-License-Identifier: Apache-2.0
#include "simd.h"

namespace matmul {

Simd best_simd() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    return Simd::kAvx512;
  // Not every compiler knows "f16c" by name; every processor with AVX2 and FMA has it.
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Simd::kF16c;
#endif
  return Simd::kPortable;
}

}  // namespace matmul
