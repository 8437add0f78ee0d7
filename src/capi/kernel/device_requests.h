// SPDX-License-Identifier: Apache-2.0
// What kernels on a device ask the host for, done by the calls that kernels of the host make.
#pragma once

#include <memspan/kernel_state.h>

#include <cstdint>

namespace memspan::capi {

// Returns the answer. Ends the process when the host's own call would, and for an unknown
// operation, which only a kernel of another version requests.
std::uint64_t answer_request(memspan_kernel_request& request);

}  // namespace memspan::capi
