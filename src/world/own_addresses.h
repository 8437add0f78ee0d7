// SPDX-License-Identifier: Apache-2.0
// The addresses of this host's interfaces, as numeric text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "store/endpoint.h"

namespace memspan {

bool is_numeric_address(const std::string& text);

// The address with which this host would go to `there`, which is resolved; nullopt without a way.
// Nothing is sent.
std::optional<std::string> address_towards(const Endpoint& there);

// address_of_interfaces() with an empty prefix; where all that is there leads to no other host by
// its name, the first address that is not a loopback's.
std::optional<std::string> first_address();

// The address of this host that is used to go to `there`, else the first one; never a loopback's.
// nullopt when there is none.
std::optional<std::string> address_for_other_hosts(const Endpoint& there);

// The interface with that address; empty if there is none.
std::string interface_of(const std::string& address);

// What this variable of the environment says: a numeric address, or an interface of this host, of
// which it is the first IPv4 address, else the first of IPv6. nullopt when it is not set.
Result<std::optional<std::string>> named_address(const char* variable);

// Which addresses count.
enum class AddressFamily { kAny, kIpv4, kIpv6 };

// Of the first interface, in the kernel's order, that is up and whose name begins with `prefix`;
// with kAny IPv4 before IPv6. With an empty prefix those do not count that lead to no other host:
// loopbacks, bridges and virtual wires of containers and machines, tunnels.
std::optional<std::string> address_of_interfaces(std::string_view prefix, AddressFamily family);

}  // namespace memspan
