// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX-512 (wide_kernels.h).
#ifdef __x86_64__
#include "pgas/reduction/avx512.h"

namespace memspan::inline pgas {

template struct WideKernels<Half, Avx512<Instructions::kAvx512>>;
template struct WideKernels<Bfloat16, Avx512<Instructions::kAvx512>>;
template struct WideKernels<Float8E4m3fn, Avx512<Instructions::kAvx512>>;
template struct WideKernels<Float8E5m2, Avx512<Instructions::kAvx512>>;

}  // namespace memspan::inline pgas
#endif
