// SPDX-License-Identifier: Apache-2.0
#include "launcher/rendezvous.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <string_view>

#include "core/fd.h"

namespace memspan::launcher {
namespace {

bool has(const std::vector<std::string>& environment, std::string_view prefix) {
  return std::any_of(environment.begin(), environment.end(), [prefix](const std::string& setting) {
    return setting.compare(0, prefix.size(), prefix) == 0;
  });
}

}  // namespace

// The kernel gives another one each time for long.
int free_port() {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (socket.get() < 0 || bind(socket.get(), generic, length) != 0 ||
      getsockname(socket.get(), generic, &length) != 0)
    return 0;
  return ntohs(address.sin_port);
}

void add_rendezvous(std::vector<std::string>& environment, const std::string& address, int port) {
  if (!has(environment, "MASTER_ADDR=")) environment.push_back("MASTER_ADDR=" + address);
  if (port != 0 && !has(environment, "MASTER_PORT="))
    environment.push_back(fmt::format("MASTER_PORT={}", port));
}

}  // namespace memspan::launcher
