// SPDX-License-Identifier: Apache-2.0
// The store's sockets: a listener and a connection for an endpoint, loopback only.
//
// The store has no TLS yet, and nothing of memspan is silently plain on a network, so both sides
// refuse every address that is not loopback. All sockets are non-blocking and close on exec.
#pragma once

#include "core/clock.h"
#include "core/fd.h"
#include "core/status.h"
#include "store/endpoint.h"

namespace memspan {

// A value: move-only.
struct TcpListener {
  Fd socket;
  Endpoint endpoint;  // the numeric address and the real port
};

// Host names resolve in the caller's thread (the resolver's own time-outs apply to them, not
// ours). kNotSupported when an address is not loopback, kUnavailable when the endpoint is taken
// or its name is unknown.
Result<TcpListener> listen_tcp(const Endpoint& endpoint);

// One attempt at each of the endpoint's addresses. kUnavailable with the last address's reason;
// kNotSupported as above.
Result<Fd> connect_tcp(const Endpoint& endpoint, Deadline deadline);

// For sockets that are not TCP (a socket pair) this does nothing.
void send_small_messages_at_once(int socket);

}  // namespace memspan
