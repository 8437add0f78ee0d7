// SPDX-License-Identifier: Apache-2.0
// Resolves the names of hosts with a deadline. The system's resolver has none, and waits for tens
// of seconds when the answer of a name server is lost.
#pragma once

#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "net/endpoint.h"
#include "net/socket_address.h"

namespace memspan {

// Returns IPv4 addresses first, so that "localhost" means 127.0.0.1 to all members. kUnavailable if
// the name is unknown or no answer came by the deadline. Then a thread is left behind that ends
// when the system's resolver gives up.
Result<std::vector<SocketAddress>> resolve(const Endpoint& endpoint, const Deadline& deadline);

}  // namespace memspan
