// SPDX-License-Identifier: Apache-2.0
#include "net/own_addresses.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/stat.h>

#include <array>

#include "core/environment.h"

namespace memspan::inline net {
namespace {

// The number of a process's network namespace; empty if it is not known.
std::string network_of(const char* process) {
  struct stat info {};
  const std::string path = std::string("/proc/") + process + "/ns/net";
  return stat(path.c_str(), &info) == 0 ? std::to_string(info.st_ino) : std::string();
}

// A name server that has not answered by then is as good as none.
constexpr auto kPatienceWithNames = std::chrono::seconds(5);

// Visits the addresses of this host until `visit(entry, text)` returns true.
template <typename Visit>
void visit_addresses(Visit visit) {
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(found, freeifaddrs);
  for (const ifaddrs* each = found; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const std::string text = SocketAddress::of(*each->ifa_addr).host();
    if (!text.empty() && visit(*each, text)) return;
  }
}

// The address of the first wanted interface, IPv4 before IPv6. Skips addresses that are valid only
// with the interface's name after them.
template <typename IsWanted>
std::optional<std::string> first_of(AddressFamily family, IsWanted is_wanted) {
  std::string name;
  std::optional<std::string> found;
  visit_addresses([&](const ifaddrs& each, const std::string& text) {
    const bool is_v4 = each.ifa_addr->sa_family == AF_INET;
    const bool is_link_local = text.find('%') != std::string::npos;
    if ((each.ifa_flags & IFF_UP) == 0 || is_link_local ||
        family == (is_v4 ? AddressFamily::kIpv6 : AddressFamily::kIpv4) ||
        (found && (!is_v4 || name != each.ifa_name)) || !is_wanted(each))
      return false;
    name = each.ifa_name;
    found = text;
    return is_v4;
  });
  return found;
}

bool leads_to_other_hosts(const ifaddrs& interface) {
  static constexpr std::array<std::string_view, 6> kNot = {"docker", "veth", "br-",
                                                           "virbr",  "tun",  "tap"};
  return (interface.ifa_flags & IFF_LOOPBACK) == 0 &&
         std::none_of(kNot.begin(), kNot.end(), [&](std::string_view prefix) {
           return std::string_view(interface.ifa_name).starts_with(prefix);
         });
}

}  // namespace

Host Host::own() {
  if (auto chosen = environment("MEMSPAN_HOST_ID")) return {*chosen, *chosen};
  Host host{kernel_identity(), host_name()};
  const std::string network = network_of("self"), first = network_of("1");
  if (first.empty() || network == first) return host;
  if (const auto address = first_address()) host.name += " at " + *address;
  return host;
}

Host Host::decode(std::string_view text) {
  const std::size_t end = text.find('\n');
  const std::string id(text.substr(0, end));
  return {id, end == std::string_view::npos ? id : std::string(text.substr(end + 1))};
}

std::string kernel_identity() {
  std::string identity = first_line_of("/proc/sys/kernel/random/boot_id");
  if (const std::string network = network_of("self"); !network.empty())
    identity.append(":").append(network);
  return identity;
}

bool is_numeric_address(const std::string& text) {
  return SocketAddress::parse(text, 0).is_ok();
}

// Connecting a datagram socket only looks up the route.
std::optional<std::string> address_towards(const Endpoint& there) {
  const auto found = resolve(there, Deadline::after(kPatienceWithNames));
  if (!found.is_ok()) return std::nullopt;
  for (const SocketAddress& each : *found) {
    const Fd socket(::socket(each.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket.is_valid() || connect(socket.get(), each.get(), each.length) != 0) continue;
    if (const auto own = SocketAddress::of_socket(socket.get()); own.is_ok()) return own->host();
  }
  return std::nullopt;
}

std::optional<std::string> first_address() {
  if (auto address = address_of_interfaces("", AddressFamily::kAny)) return address;
  return first_of(AddressFamily::kAny,
                  [](const ifaddrs& each) { return (each.ifa_flags & IFF_LOOPBACK) == 0; });
}

std::optional<std::string> address_for_other_hosts(const Endpoint& there) {
  // A host's own name often means its loopback.
  auto own = address_towards(there);
  if (own && own->rfind("127.", 0) != 0 && *own != "::1") return own;
  return first_address();
}

std::vector<SocketAddress> addresses_of_interface(const std::string& name) {
  std::vector<SocketAddress> found;
  visit_addresses([&](const ifaddrs& each, const std::string&) {
    if (name == each.ifa_name) found.push_back(SocketAddress::of(*each.ifa_addr));
    return false;
  });
  std::stable_partition(found.begin(), found.end(),
                        [](const SocketAddress& one) { return one.family() == AF_INET; });
  return found;
}

std::string interface_of(const std::string& address) {
  std::string name;
  visit_addresses([&](const ifaddrs& each, const std::string& text) {
    const bool is_it = text == address && (each.ifa_flags & IFF_UP) != 0;
    if (is_it) name = each.ifa_name;
    return is_it;
  });
  return name;
}

Result<std::optional<std::string>> named_address(const char* variable) {
  const std::optional<std::string> text = environment(variable);
  if (!text || is_numeric_address(*text)) return text;
  auto address =
      first_of(AddressFamily::kAny, [&](const ifaddrs& each) { return *text == each.ifa_name; });
  if (address) return address;
  return Status(Code::kInvalidArgument,
                fmt::format("{} is \"{}\"; allowed are a numeric address and an interface of this "
                            "host that has one",
                            variable, *text));
}

std::optional<std::string> address_of_interfaces(std::string_view prefix, AddressFamily family) {
  return first_of(family, [&](const ifaddrs& each) {
    return prefix.empty() ? leads_to_other_hosts(each)
                          : std::string_view(each.ifa_name).starts_with(prefix);
  });
}

}  // namespace memspan::inline net
