// SPDX-License-Identifier: Apache-2.0
#include "net/host_identity.h"

#include <sys/stat.h>

#include <fstream>

#include "core/environment.h"
#include "net/own_addresses.h"

namespace memspan {

namespace {

// Its number; empty if it is not known.
std::string network_of(const char* process) {
  struct stat info {};
  const std::string path = std::string("/proc/") + process + "/ns/net";
  return stat(path.c_str(), &info) == 0 ? std::to_string(info.st_ino) : std::string();
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
  std::string identity;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), identity);
  if (const std::string network = network_of("self"); !network.empty())
    identity.append(":").append(network);
  return identity;
}

}  // namespace memspan
