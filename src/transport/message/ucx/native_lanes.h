// SPDX-License-Identifier: Apache-2.0
// Finds the UCX transports that reach a peer's memory without its processor. On all others UCX
// emulates the same calls, by messages to its own handlers in the peer; those are never used.
#pragma once

#include <string>
#include <string_view>

namespace memspan::ucx {

// The value of UCX_TLS without TCP, so that UCX emulates nothing over TCP. Empty if nothing
// remains.
std::string without_tcp(std::string_view transports);

// Whether a network of that name writes to any registered memory. Unknown ones are not native.
bool is_native_network(std::string_view transport);

}  // namespace memspan::ucx
