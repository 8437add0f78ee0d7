// SPDX-License-Identifier: Apache-2.0
// What the host and the kernel of the test of instances share.
#pragma once

#include <cstdint>

// Each of two blocks writes word 1 + block of the next PE, and waits for its own.
void instance_kernel(std::int64_t* words, std::uint64_t instance, std::int64_t value);
