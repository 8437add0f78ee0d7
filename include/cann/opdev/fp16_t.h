// SPDX-License-Identifier: Apache-2.0
// The type of half floats in host code next to kernels: the kernel's own here.
#ifndef MEMSPAN_CANN_FP16_H
#define MEMSPAN_CANN_FP16_H

#include "../../aclshmem/device/ascendc.h"

namespace op {
using fp16_t = ::half;
}

#endif
