// SPDX-License-Identifier: Apache-2.0
#include "transport/message/ucx/native_lanes.h"

#include <algorithm>
#include <array>

#include "core/environment.h"

namespace memspan::ucx {
namespace {

// `ud` and `tcp` lack one-sided operations; UCX does not put and get by those of `cma`.
constexpr std::array<std::string_view, 3> kNetworks = {"rc_verbs", "rc_mlx5", "dc_mlx5"};

}  // namespace

std::string without_tcp(std::string_view transports) {
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

bool is_native_network(std::string_view transport) {
  return std::find(kNetworks.begin(), kNetworks.end(), transport) != kNetworks.end();
}

}  // namespace memspan::ucx
