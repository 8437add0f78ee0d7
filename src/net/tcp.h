// SPDX-License-Identifier: Apache-2.0
// The store's sockets: a listener and a connection for an endpoint.
//
// All sockets are non-blocking and close on exec. A listener is bound to the named address, or to
// the first address of the named interface or host. Only "0.0.0.0" and "::" bind it to all
// addresses.
#pragma once

#include "core/clock.h"
#include "core/fd.h"
#include "net/endpoint.h"

namespace memspan::inline net {

inline constexpr Duration kTcpPatience = std::chrono::seconds(3);

// A value: move-only.
struct TcpListener {
  Fd socket;
  Endpoint endpoint;  // the numeric address and the real port
};

// A value: move-only.
struct TcpConnection {
  Fd socket;
  Endpoint peer;          // the numeric address and the port
  bool is_local = false;  // the peer's address is one of this host
  bool is_loopback = false;
};

// kUnavailable when the port is taken, or the name is unknown or not resolved within 10 s;
// kUnreachable for an address of another host.
Result<TcpListener> listen_tcp(const Endpoint& endpoint);

// Makes one attempt at each of the endpoint's addresses; the deadline includes resolving its name.
// kUnavailable with the last address's reason.
Result<TcpConnection> connect_tcp(const Endpoint& endpoint, Deadline deadline);

// "192.0.2.7", or "" for a socket that has no address.
std::string peer_address(int socket);
// Whether the other end of a connected socket is on this host, judging by its address.
bool has_local_peer(int socket);

// Sends small messages at once, and ends the connection if the peer host does not answer for
// kTcpPatience. Does nothing for sockets other than TCP (a socket pair).
void tune_connection(int socket);
// Its close() informs the peer at once, whatever that has not read, which may be lost.
void reset_on_close(int socket);

}  // namespace memspan::inline net
