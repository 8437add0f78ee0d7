// SPDX-License-Identifier: Apache-2.0
// An address of IP and a port, as UCX takes it.
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
  // Of numeric texts.
  static Result<SocketAddress> parse(const std::string& host, const std::string& port);
  ucs_sock_addr_t view() const { return {reinterpret_cast<const sockaddr*>(&storage), length}; }
};

}  // namespace memspan::ucx
