// SPDX-License-Identifier: Apache-2.0
// What kernels on a device ask the host for, done by the calls that kernels of the host make.
#pragma once

#include <memspan/kernel_state.h>

#include <cstdint>

namespace memspan::capi {

// The answer; the process ends where the host's own call would end it. For another number of an
// operation, too, which only a kernel of another version asks.
std::uint64_t answer_request(memspan_kernel_request& request);

}  // namespace memspan::capi
