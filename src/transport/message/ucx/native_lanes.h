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

// A value.
struct NativeLanes {
  // A network that writes to any registered memory; or empty.
  std::string network;
  // Shared memory, which reaches only memory of some kinds; or empty.
  std::string shared;
};

// Finds the lanes of an endpoint in the output of ucp_ep_print_info(): UCX 1.13 has no other
// interface. Unreadable lines name no lane, and unknown transports are not native.
NativeLanes native_lanes(std::string_view endpoint_info);

}  // namespace memspan::ucx
