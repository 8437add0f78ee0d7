// SPDX-License-Identifier: Apache-2.0
#include "transport/message/ucx/native_lanes.h"

#include <algorithm>
#include <array>

namespace memspan::ucx {
namespace {

// `ud` and `tcp` lack one-sided operations; UCX does not put and get by those of `cma`.
constexpr std::array<std::string_view, 3> kNetworks = {"rc_verbs", "rc_mlx5", "dc_mlx5"};
constexpr std::array<std::string_view, 3> kShared = {"posix", "sysv", "xpmem"};

bool has(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The name in "lane[0]:  2:posix/memory.0 md[1] ...", or nothing.
std::string_view transport_of(std::string_view line) {
  const std::size_t lane = line.find("lane[");
  if (lane == std::string_view::npos) return {};
  line.remove_prefix(lane);
  const std::size_t after = line.find("]:");
  if (after == std::string_view::npos) return {};
  line.remove_prefix(after + 2);
  const std::size_t colon = line.find(':');
  const std::size_t slash = line.find('/');
  if (colon == std::string_view::npos || slash == std::string_view::npos || slash < colon)
    return {};
  return line.substr(colon + 1, slash - colon - 1);
}

}  // namespace

std::string without_tcp(std::string_view transports) {
  if (transports.empty() || transports == "all") return "^tcp";
  if (transports.front() == '^') return std::string(transports) + ",tcp";
  std::string rest;
  while (!transports.empty()) {
    const std::size_t comma = std::min(transports.find(','), transports.size());
    const std::string_view name = transports.substr(0, comma);
    transports.remove_prefix(std::min(comma + 1, transports.size()));
    if (name.empty() || name == "tcp") continue;
    if (name == "all") return "^tcp";
    if (!rest.empty()) rest += ',';
    rest += name;
  }
  return rest;
}

NativeLanes native_lanes(std::string_view endpoint_info) {
  NativeLanes lanes;
  while (!endpoint_info.empty()) {
    const std::size_t end = std::min(endpoint_info.find('\n'), endpoint_info.size());
    const std::string_view name = transport_of(endpoint_info.substr(0, end));
    endpoint_info.remove_prefix(std::min(end + 1, endpoint_info.size()));
    if (lanes.network.empty() && has(kNetworks, name)) lanes.network = name;
    if (lanes.shared.empty() && has(kShared, name)) lanes.shared = name;
  }
  return lanes;
}

}  // namespace memspan::ucx
