// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX-512 with BF16 (wide_kernels.h).
#ifdef __x86_64__
#include "pgas/reduction/avx512.h"

namespace memspan::inline pgas {

template struct WideKernels<Bfloat16, Avx512<Instructions::kAvx512Bf16>>;

}  // namespace memspan::inline pgas
#endif
