// SPDX-License-Identifier: Apache-2.0
#include "net/tcp.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "core/environment.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "net/dial.h"
#include "net/own_addresses.h"

namespace memspan::inline net {
namespace {

// A listener waits no longer than this for the address of its name: a cluster may know it only
// after its process has started, and a name server may not respond.
constexpr Duration kNamePatience = std::chrono::seconds(10);
constexpr Duration kNamePause = std::chrono::milliseconds(200);

Status unavailable(const Endpoint& endpoint, std::string_view what, int error) {
  const Status why = Status::from_errno(fmt::format("{} {}", what, endpoint.to_string()), error);
  return {Code::kUnavailable, why.message()};
}

MEMSPAN_REMEDY(kCannotListen, "cannot-listen",
               "The port is in use, or the address does not belong to this host.",
               "Look at `ss -ltnp` and `ip -brief addr`, and choose another port or address.");

MEMSPAN_REMEDY(
    kNameIsLoopback, "name-is-loopback",
    "The line of /etc/hosts for the store's host has a loopback address (127.0.1.1 on Debian).",
    "Pass the address or interface that other hosts reach, or correct /etc/hosts.");

// As opposed to an address, and to the names of every host's own loopback address.
bool is_host_name(const std::string& host) {
  return !SocketAddress::parse(host, 0).is_ok() && host.find("localhost") == std::string::npos &&
         host.find("loopback") == std::string::npos;
}

Result<std::vector<SocketAddress>> resolve_patiently(const Endpoint& endpoint) {
  const Deadline deadline = Deadline::after(kNamePatience);
  for (bool has_told = false;; has_told = true) {
    auto addresses = resolve(endpoint, deadline);
    if (addresses.code() != Code::kUnavailable || deadline.has_passed()) return addresses;
    if (!has_told)
      log_line(LogLevel::kWarn,
               fmt::format("waiting {:.0f} s for the address to listen at: {}",
                           to_seconds(kNamePatience), addresses.status().message()));
    const Deadline next = until_next_look(deadline.within(kNamePause));
    static_cast<void>(::poll(nullptr, 0, std::max(next.remaining_poll_ms(), 0)));
    if (is_interrupted()) return interruption();
  }
}

Result<TcpListener> listen_at(const Endpoint& endpoint, const SocketAddress& address) {
  Fd socket = open_socket(address);
  if (!socket.is_valid()) return unavailable(endpoint, "opening a socket for", errno);
  if (int error = bind_and_listen(socket.get(), address, SOMAXCONN); error != 0) {
    const Status failed = Status::from_errno("listening at " + endpoint.to_string(), error);
    const Code code = error == EADDRINUSE      ? Code::kUnavailable
                      : error == EADDRNOTAVAIL ? Code::kUnreachable
                                               : failed.code();
    return Status(code, failed.message() + kCannotListen);
  }
  MEMSPAN_TRY_ASSIGN(const SocketAddress local, SocketAddress::of_socket(socket.get()),
                     "listening");
  return TcpListener{std::move(socket), {local.host(), local.port()}};
}

// Asks the kernel: only an address of this host can be bound.
bool is_of_this_host(SocketAddress address) {
  if (address.is_loopback()) return true;
  address.set_port(0);
  const Fd socket = open_socket(address);
  return socket.is_valid() && ::bind(socket.get(), address.get(), address.length) == 0;
}

Result<TcpConnection> connect_to(const Endpoint& endpoint, const SocketAddress& address,
                                 const Deadline& deadline) {
  Dialled dialled = dial(address, deadline);
  if (dialled.error != 0) return unavailable(endpoint, "connecting to", dialled.error);
  tune_connection(dialled.socket.get());
  return TcpConnection{.socket = std::move(dialled.socket),
                       .peer = {address.host(), address.port()},
                       .is_local = is_of_this_host(address),
                       .is_loopback = address.is_loopback()};
}

}  // namespace

Result<TcpListener> listen_tcp(const Endpoint& endpoint) {
  std::vector<SocketAddress> addresses = addresses_of_interface(endpoint.host);
  for (SocketAddress& address : addresses) address.set_port(endpoint.port);
  if (addresses.empty()) {
    MEMSPAN_TRY_ASSIGN(addresses, resolve_patiently(endpoint), "listening");
    // /etc/hosts may have this host's name at 127.0.1.1, which other hosts cannot reach.
    std::stable_partition(addresses.begin(), addresses.end(),
                          [](const SocketAddress& address) { return !address.is_loopback(); });
    if (addresses.front().is_loopback() && is_host_name(endpoint.host))
      log_line(LogLevel::kWarn,
               fmt::format("{} is {} on this host, so that no other host can connect{}",
                           endpoint.host, addresses.front().host(), kNameIsLoopback));
  }
  Status last;
  for (const SocketAddress& address : addresses) {
    auto listener = listen_at(endpoint, address);
    if (listener.is_ok()) return listener;
    last = listener.status();
  }
  return last;
}

Result<TcpConnection> connect_tcp(const Endpoint& endpoint, Deadline deadline) {
  MEMSPAN_TRY_ASSIGN(std::vector<SocketAddress> addresses, resolve(endpoint, deadline),
                     "connecting");
  Status last;
  for (const SocketAddress& address : addresses) {
    auto connection = connect_to(endpoint, address, deadline);
    if (connection.is_ok()) return connection;
    last = connection.status();
  }
  return last;
}

std::string peer_address(int socket) {
  const auto peer = SocketAddress::of_peer(socket);
  return peer.is_ok() ? peer->host() : std::string();
}

bool has_local_peer(int socket) {
  const auto peer = SocketAddress::of_peer(socket);
  return peer.is_ok() && (!peer->is_ip() || is_of_this_host(*peer));
}

void tune_connection(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // Detects a peer host that lost power while data is on its way to it.
  const auto ms = static_cast<unsigned>(
      std::chrono::duration_cast<std::chrono::milliseconds>(kTcpPatience).count());
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

void reset_on_close(int socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace memspan::inline net
