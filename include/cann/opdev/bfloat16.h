// SPDX-License-Identifier: Apache-2.0
// The type of bfloat16 in host code next to kernels: the kernel's own here.
#ifndef MEMSPAN_CANN_BFLOAT16_H
#define MEMSPAN_CANN_BFLOAT16_H

#include "../../aclshmem/device/ascendc.h"

namespace op {
using bfloat16 = ::bfloat16_t;
}

#endif
