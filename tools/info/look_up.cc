// SPDX-License-Identifier: Apache-2.0
#include "info/look_up.h"

#include <fmt/format.h>
#include <netdb.h>

#include "net/endpoint.h"
#include "net/own_addresses.h"
#include "net/trusted_networks.h"

namespace memspan::info {
namespace {

bool is_of_this_host(const std::string& address) {
  return is_loopback(address) || is_any_address(address) ||
         address_towards({address, 1}) == address;
}

}  // namespace

Result<std::vector<HostAddress>> look_up(const Endpoint& there, const Deadline& deadline) {
  const auto found = resolve(there, deadline);
  if (!found.is_ok() && deadline.has_passed())
    return Status(Code::kTimeout,
                  fmt::format("no name server said in time where \"{}\" is", there.host));
  if (!found.is_ok()) return found.status();
  std::vector<HostAddress> addresses;
  for (const SocketAddress& each : *found) {
    char text[NI_MAXHOST];
    if (::getnameinfo(each.get(), each.length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
      addresses.push_back({text, is_of_this_host(text)});
  }
  return addresses;
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  const auto none = TrustedNetworks::parse("0");
  return none.is_ok() && is_numeric_address(host) && none->contain(host);
}

bool is_any_address(const std::string& host) {
  return host == "0.0.0.0" || host == "::";
}

}  // namespace memspan::info
