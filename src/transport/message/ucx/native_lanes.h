// SPDX-License-Identifier: Apache-2.0
// Which of UCX's transports reach memory of a peer without the peer's processor. UCX gives the same
// calls on all others, by messages to handlers of its own that the peer has to run; those are never
// used.
#pragma once

#include <string>
#include <string_view>

namespace memspan::ucx {

// What UCX_TLS says, without TCP: so nothing that is set up with it emulates over TCP. Empty when
// nothing is left.
std::string without_tcp(std::string_view transports);

// A value.
struct NativeLanes {
  // Of a network that writes to any registered memory; empty if there is none.
  std::string network;
  // Of shared memory, which reaches memory of some kinds only; empty if there is none.
  std::string shared;
};

// Of an endpoint, from what ucp_ep_print_info() says of it: UCX 1.13 has no other way to ask. A
// line that is not understood names no lane, and a transport that is not known is not native.
NativeLanes native_lanes(std::string_view endpoint_info);

}  // namespace memspan::ucx
