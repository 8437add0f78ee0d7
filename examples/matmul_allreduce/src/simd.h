// SPDX-License-Identifier: Apache-2.0
// Which vector instructions a loop may use, decided at run time: the build has no -march.
#pragma once

// Marks a function that is compiled for AVX-512 and called only when best_simd() is kAvx512.
#if defined(__x86_64__)
#define MATMUL_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#else
#define MATMUL_AVX512
#endif

namespace matmul {

enum class Simd { kPortable, kF16c, kAvx512 };

// What this processor has. Cheap: asked at every bulk call.
Simd best_simd();

}  // namespace matmul
