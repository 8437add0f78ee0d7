// SPDX-License-Identifier: Apache-2.0
// Which host this is, and the addresses of its interfaces, as numeric text.
#pragma once

#include <vector>

#include "net/endpoint.h"
#include "net/socket_address.h"

namespace memspan::inline net {

// A value: the host of a process, for its peers.
struct Host {
  std::string id;    // processes with the same one can share memory
  std::string name;  // for messages; other hosts may have the same one

  // Both are MEMSPAN_HOST_ID when that is set. Else kernel_identity(), and the host's name. In
  // another network namespace than the first process, the name ends in " at ADDRESS".
  static Host own();
  // As one text, and back.
  std::string encode() const { return id + '\n' + name; }
  static Host decode(std::string_view text);
  bool operator==(const Host& other) const { return id == other.id; }
};

// The kernel's boot id and the network namespace: processes with the same one reach each other's
// abstract Unix sockets, even if MEMSPAN_HOST_ID separates them.
std::string kernel_identity();

// Also with an interface of this host, as in "fe80::1%eth0".
bool is_numeric_address(const std::string& text);

// The address from which this host would connect to `there`, which is resolved; nullopt without a
// route. Sends nothing.
std::optional<std::string> address_towards(const Endpoint& there);

// address_of_interfaces() with an empty prefix. If by their names no interfaces lead to other
// hosts, the first address that is not a loopback's.
std::optional<std::string> first_address();

// The address of this host that is used to reach `there`, else the first one; never a loopback's.
// nullopt without one.
std::optional<std::string> address_for_other_hosts(const Endpoint& there);

// The addresses of the interface of that name, IPv4 first; empty without such an interface.
std::vector<SocketAddress> addresses_of_interface(const std::string& name);

// The interface with that address; empty if no interface has it.
std::string interface_of(const std::string& address);

// Reads an environment variable that is a numeric address or an interface of this host. An
// interface gives its first IPv4 address, else its first IPv6 address. nullopt if it is not set.
Result<std::optional<std::string>> named_address(const char* variable);

// Which addresses count.
enum class AddressFamily { kAny, kIpv4, kIpv6 };

// The address of the first interface, in the kernel's order, that is up and whose name begins with
// `prefix`; kAny prefers IPv4. An empty prefix skips those that lead to no other host: loopbacks,
// bridges and virtual wires of containers and machines, tunnels.
std::optional<std::string> address_of_interfaces(std::string_view prefix, AddressFamily family);

}  // namespace memspan::inline net
