// SPDX-License-Identifier: Apache-2.0
// An IP address and a port, as UCX takes them.
#pragma once

#include <sys/socket.h>
#include <ucp/api/ucp.h>

#include <string>

#include "core/status.h"

namespace memspan::ucx {

// A value.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  // Takes numbers only.
  static Result<SocketAddress> parse(const std::string& host, const std::string& port);
  ucs_sock_addr_t view() const { return {reinterpret_cast<const sockaddr*>(&storage), length}; }
};

}  // namespace memspan::ucx
