// SPDX-License-Identifier: Apache-2.0
#include "net/endpoint.h"

#include <fmt/format.h>
#include <netdb.h>

#include "core/environment.h"
#include "core/interrupt.h"
#include "core/thread.h"

namespace memspan::inline net {
namespace {

Status invalid(std::string_view url, std::string_view why) {
  return {
      Code::kInvalidArgument,
      fmt::format("\"{}\" is not an endpoint ({}); allowed is tcp://HOST:PORT, tcp://[IPV6]:PORT "
                  "or tcp6://[IPV6]:PORT",
                  url, why)};
}

using Addresses = std::vector<SocketAddress>;

MEMSPAN_REMEDY(kHostUnknown, "host-unknown",
               "The name is not in /etc/hosts, and the name server does not know it or answer.",
               "Run `getent hosts NAME` in the same container; correct it, or use an address.");

Status unresolved(const Endpoint& endpoint, std::string_view why) {
  return {Code::kUnavailable,
          fmt::format("resolving the host of {}: {}{}", endpoint.to_string(), why, kHostUnknown)};
}

// May block for as long as the system's resolver, unless `flags` say that the host is numeric.
Result<Addresses> look_up(const Endpoint& endpoint, int flags) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(endpoint.port);
  if (int error = getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &list); error != 0)
    return unresolved(endpoint, gai_strerror(error));
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  Addresses addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next)
    addresses.push_back(SocketAddress::of(*entry->ai_addr));
  return addresses;
}

Result<Addresses> look_up_in_time(const Endpoint& endpoint, const Deadline& deadline) {
  // Shared with the thread, which may still look when its caller has given up.
  auto shared = std::make_shared<AwaitedValue<Result<Addresses>>>();
  auto thread =
      start_thread("a host's name", [shared, endpoint] { shared->set(look_up(endpoint, 0)); });
  if (!thread.is_ok()) return thread.status();
  if (auto found = shared->wait(deadline)) {
    thread->join();
    return std::move(*found);
  }
  thread->detach();
  if (is_interrupted()) return interruption();
  return unresolved(endpoint, "no answer from the name server in time");
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
  MEMSPAN_PASS_ASSIGN(auto port, parse_integer("the port", text.substr(colon + 1), 0, 65535));
  return Endpoint{std::string(host), static_cast<std::uint16_t>(port)};
}

std::string Endpoint::to_string() const {
  return "tcp://" + place();
}

std::string Endpoint::place() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Result<Addresses> resolve(const Endpoint& endpoint, const Deadline& deadline) {
  auto addresses = look_up(endpoint, AI_NUMERICHOST);
  if (!addresses.is_ok()) addresses = look_up_in_time(endpoint, deadline);
  // Works everywhere (RFC 6761), even on a small system without /etc/hosts.
  if (addresses.code() == Code::kUnavailable && endpoint.host == "localhost")
    addresses = look_up({"127.0.0.1", endpoint.port}, AI_NUMERICHOST);
  if (addresses.is_ok())
    std::stable_partition(addresses->begin(), addresses->end(),
                          [](const SocketAddress& a) { return a.family() == AF_INET; });
  return addresses;
}

}  // namespace memspan::inline net
