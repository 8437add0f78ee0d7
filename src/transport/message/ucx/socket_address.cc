// SPDX-License-Identifier: Apache-2.0
#include "transport/message/ucx/socket_address.h"

#include <fmt/format.h>
#include <netdb.h>

#include <cstring>
#include <memory>

namespace memspan::ucx {

Result<SocketAddress> SocketAddress::parse(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0)
    return Status(
        Code::kInvalidArgument,
        fmt::format("\"{}\" and \"{}\" are not a numeric address and a port", host, port));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  SocketAddress address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  return address;
}

}  // namespace memspan::ucx
