// SPDX-License-Identifier: Apache-2.0
// The store's sockets: a listener and a connection for an endpoint.
//
// All sockets are non-blocking and close on exec. A listener is bound to the address that was
// named, or to the first of the interface or the host that was named; to all addresses only when
// "0.0.0.0" or "::" asks for it.
#pragma once

#include <string>

#include "core/clock.h"
#include "core/fd.h"
#include "core/status.h"
#include "store/endpoint.h"

namespace memspan {

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

// kUnavailable when the endpoint is taken, or its name is unknown or not resolved within 10 s.
Result<TcpListener> listen_tcp(const Endpoint& endpoint);

// One attempt at each of the endpoint's addresses; its name is resolved by the deadline, too.
// kUnavailable with the last address's reason.
Result<TcpConnection> connect_tcp(const Endpoint& endpoint, Deadline deadline);

// "192.0.2.7", or "" for a socket that has no address.
std::string peer_address(int socket);
// Whether the other end of a connected socket is on this host, as far as its address tells.
bool has_local_peer(int socket);

// Small messages leave at once, and a peer host that does not answer ends the connection after
// kTcpPatience. For sockets that are not TCP (a socket pair) this does nothing.
void tune_connection(int socket);

}  // namespace memspan
