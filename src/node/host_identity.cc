// SPDX-License-Identifier: Apache-2.0
#include "node/host_identity.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>

#include "core/environment.h"

namespace memspan {

namespace {

// Its number; empty if it is not known.
std::string network_of(const char* process) {
  struct stat info {};
  const std::string path = std::string("/proc/") + process + "/ns/net";
  return stat(path.c_str(), &info) == 0 ? std::to_string(info.st_ino) : std::string();
}

// The first address of this network namespace that other hosts may use, IPv4 before IPv6; empty if
// it has none.
std::string first_address() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
      if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != family ||
          (each->ifa_flags & IFF_UP) == 0 || (each->ifa_flags & IFF_LOOPBACK) != 0)
        continue;
      char text[NI_MAXHOST];
      const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      if (::getnameinfo(each->ifa_addr, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
        return text;
    }
  return {};
}

}  // namespace

Host Host::own() {
  if (auto chosen = environment("MEMSPAN_HOST_ID")) return {*chosen, *chosen};
  Host host{kernel_identity(), host_name()};
  const std::string network = network_of("self"), first = network_of("1");
  if (first.empty() || network == first) return host;
  if (const std::string address = first_address(); !address.empty()) host.name += " at " + address;
  return host;
}

Host Host::decode(std::string_view text) {
  const std::size_t end = text.find('\n');
  const std::string id(text.substr(0, end));
  return {id, end == std::string_view::npos ? id : std::string(text.substr(end + 1))};
}

std::string kernel_identity() {
  std::string identity;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), identity);
  if (const std::string network = network_of("self"); !network.empty())
    identity.append(":").append(network);
  return identity;
}

std::string host_name() {
  char name[256] = "?";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace memspan
