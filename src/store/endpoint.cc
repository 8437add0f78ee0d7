// SPDX-License-Identifier: Apache-2.0
#include "store/endpoint.h"

#include <fmt/format.h>

#include "core/environment.h"

namespace memspan {
namespace {

Status invalid(std::string_view url, std::string_view why) {
  return {
      Code::kInvalidArgument,
      fmt::format("\"{}\" is not an endpoint ({}); allowed is tcp://HOST:PORT, tcp://[IPV6]:PORT "
                  "or tcp6://[IPV6]:PORT",
                  url, why)};
}

}  // namespace

Result<Endpoint> Endpoint::parse(std::string_view url) {
  std::string_view rest = url;
  if (rest.starts_with("tcp://"))
    rest.remove_prefix(6);
  else if (rest.starts_with("tcp6://"))
    rest.remove_prefix(7);
  else
    return invalid(url, "it does not begin with tcp:// or tcp6://");
  std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return invalid(url, "it has no port");
  std::string_view host = rest.substr(0, colon);
  if (host.starts_with('[')) {
    if (!host.ends_with(']')) return invalid(url, "the bracket is not closed");
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return invalid(url, "an IPv6 address needs brackets");
  }
  if (host.find_first_of("[]") != std::string_view::npos)
    return invalid(url, "the host has a bracket");
  if (host.empty() || host.size() > 253)
    return invalid(url, "the host must have 1 to 253 characters");
  auto port = parse_integer("the port", rest.substr(colon + 1), 0, 65535);
  if (!port.is_ok()) return invalid(url, port.status().message());
  return Endpoint{std::string(host), static_cast<std::uint16_t>(*port)};
}

std::string Endpoint::to_string() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("tcp://[{}]:{}", host, port) : fmt::format("tcp://{}:{}", host, port);
}

}  // namespace memspan
