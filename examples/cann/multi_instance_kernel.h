// SPDX-License-Identifier: Apache-2.0
// Every PE of the instance gets the value of every other one, once for each block:
// inbox[block][PE], of int32_t.
#ifndef MEMSPAN_EXAMPLES_MULTI_INSTANCE_KERNEL_H
#define MEMSPAN_EXAMPLES_MULTI_INSTANCE_KERNEL_H

#include <cstdint>

void launch_exchange(uint32_t blocks, void* stream, void* inbox, int32_t value, uint64_t instance);

#endif
