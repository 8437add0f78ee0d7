// SPDX-License-Identifier: Apache-2.0
// The address of a socket.
#pragma once

#include <sys/socket.h>

#include <cstring>

#include "core/fd.h"

namespace memspan::inline net {

// IPv4, IPv6 or a Unix socket's. A value.
struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = sizeof(sockaddr_storage);

  // Numbers only, as 10.0.0.1, ::1 or fe80::1%eth0. kInvalidArgument names the host.
  static Result<SocketAddress> parse(const std::string& host, std::uint16_t port);
  // The abstract Unix socket of that name: nothing is left in the file system. kInvalidArgument
  // unless it has 1 to 107 bytes.
  static Result<SocketAddress> of_name(std::string_view name);
  // Copies an address of IPv4 or IPv6.
  static SocketAddress of(const sockaddr& address);
  // The address that the socket is bound to.
  static Result<SocketAddress> of_socket(int socket);
  // The address of its other end.
  static Result<SocketAddress> of_peer(int socket);

  int family() const { return storage.ss_family; }
  bool is_ip() const { return family() == AF_INET || family() == AF_INET6; }
  bool is_loopback() const;
  bool is_link_local() const;  // only IPv6: it is valid with an interface
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  // The number, with the interface of a link-local address; empty if this is not an IP address.
  std::string host() const;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  bool operator==(const SocketAddress& other) const {
    return length == other.length && std::memcmp(&storage, &other.storage, length) == 0;
  }
};

// A stream's socket for the address; non-blocking, closes on exec. Invalid, with errno, if it
// cannot be made.
Fd open_socket(const SocketAddress& address);
// 0 or an errno. With a port other than 0, the port of a job that just ended is free at once.
int bind_and_listen(int socket, const SocketAddress& address, int backlog);

}  // namespace memspan::inline net
