// SPDX-License-Identifier: Apache-2.0
// Finds the UCX transports that reach a peer's memory without its processor. On all others UCX
// emulates the same calls, by messages to its own handlers in the peer; those are never used.
#pragma once

#include "core/environment.h"

namespace memspan::ucx {

// The value of UCX_TLS without TCP, so that UCX emulates nothing over TCP. Empty if nothing
// remains.
inline std::string without_tcp(std::string_view transports) {
  if (transports.empty() || transports == "all") return "^tcp";
  if (transports.front() == '^') return std::string(transports) + ",tcp";
  std::string rest;
  for (const std::string_view name : split(transports, ',')) {
    if (name == "all") return "^tcp";
    if (name.empty() || name == "tcp") continue;
    if (!rest.empty()) rest += ',';
    rest += name;
  }
  return rest;
}

// Whether a network of that name writes to any registered memory. Unknown ones are not native:
// `ud` and `tcp` lack one-sided operations; UCX does not put and get by those of `cma`.
inline bool is_native_network(std::string_view transport) {
  return transport == "rc_verbs" || transport == "rc_mlx5" || transport == "dc_mlx5";
}

}  // namespace memspan::ucx
