// SPDX-License-Identifier: Apache-2.0
#include "world/unique_id_endpoint.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/environment.h"
#include "net/own_addresses.h"

namespace memspan {
namespace {

constexpr const char* kSessionVariable = "SHMEM_UID_SESSION_ID";
constexpr const char* kNetVariable = "MEMSPAN_NET";

Result<Endpoint> read_session(const std::string& text) {
  auto endpoint = Endpoint::parse_place(text);
  if (endpoint.is_ok()) return endpoint;
  return Status(
      Code::kInvalidArgument,
      fmt::format("{} is \"{}\": {}; allowed are ADDRESS:PORT, [ADDRESS]:PORT with an IPv6 "
                  "address, and HOST:PORT",
                  kSessionVariable, text, endpoint.status().message()));
}

// "eth", "eth:inet4", "eth:inet6".
Result<std::string> read_interface(const char* variable, std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::string_view kind = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  AddressFamily family = AddressFamily::kAny;
  if (kind == "inet4") family = AddressFamily::kIpv4;
  if (kind == "inet6") family = AddressFamily::kIpv6;
  if (name.empty() || (colon != std::string_view::npos && family == AddressFamily::kAny))
    return Status(Code::kInvalidArgument,
                  fmt::format("{} is \"{}\"; allowed are the beginning of an interface's name, "
                              "optionally followed by :inet4 or :inet6",
                              variable, text));
  if (auto address = address_of_interfaces(name, family)) return *address;
  return Status(
      Code::kUnavailable,
      fmt::format("{} is \"{}\", and no interface of this host that is up begins so and has "
                  "an address of that kind",
                  variable, text));
}

}  // namespace

Result<Endpoint> choose_unique_id_endpoint(bool needs_secret) {
  if (auto session = environment(kSessionVariable)) return read_session(*session);
  for (const char* variable : {"SHMEM_UID_SOCK_IFNAME", "SHMEM_UID_SOCK_IFNAM"})
    if (auto text = environment(variable)) {
      MEMSPAN_TRY_ASSIGN(std::string address, read_interface(variable, *text),
                         "choosing an interface");
      return Endpoint{std::move(address), 0};
    }
  MEMSPAN_TRY_ASSIGN(std::optional<std::string> named, named_address(kNetVariable),
                     "choosing an address");
  if (!named && needs_secret) named = first_address();
  return Endpoint{named.value_or("127.0.0.1"), 0};
}

}  // namespace memspan
