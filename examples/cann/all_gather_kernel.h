// SPDX-License-Identifier: Apache-2.0
// The launch of the all-gather, for a host program that the system's compiler builds.
#ifndef MEMSPAN_EXAMPLES_ALL_GATHER_KERNEL_H
#define MEMSPAN_EXAMPLES_ALL_GATHER_KERNEL_H

#include <cstdint>

// `round` is another one, above 0, for each launch with the same window.
template <typename T>
void all_gather(uint32_t blocks, void* stream, uint64_t ffts, uint8_t* input, uint8_t* output,
                uint8_t* window, int elements, int round);

#endif
