// SPDX-License-Identifier: Apache-2.0
#include "net/endpoint.h"

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
  auto endpoint = parse_place(rest);
  if (!endpoint.is_ok()) return invalid(url, endpoint.status().message());
  return endpoint;
}

Result<Endpoint> Endpoint::parse_place(std::string_view text) {
  const auto wrong = [](std::string why) { return Status(Code::kInvalidArgument, std::move(why)); };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong("it has no port");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[')) {
    if (!host.ends_with(']')) return wrong("the bracket is not closed");
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong("an IPv6 address needs brackets");
  }
  if (host.find_first_of("[]") != std::string_view::npos) return wrong("the host has a bracket");
  if (host.find_first_of(" \t\r\n") != std::string_view::npos) return wrong("the host has a blank");
  if (host.empty() || host.size() > 253) return wrong("the host must have 1 to 253 characters");
  auto port = parse_integer("the port", text.substr(colon + 1), 0, 65535);
  if (!port.is_ok()) return port.status();
  return Endpoint{std::string(host), static_cast<std::uint16_t>(*port)};
}

std::string Endpoint::to_string() const {
  return "tcp://" + place();
}

std::string Endpoint::place() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace memspan
