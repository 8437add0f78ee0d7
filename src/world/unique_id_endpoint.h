// SPDX-License-Identifier: Apache-2.0
// The address of a unique id's store. Processes that get the id connect to it, from this host or
// another.
#pragma once

#include "core/status.h"
#include "net/endpoint.h"

namespace memspan {

// SHMEM_UID_SESSION_ID ("10.0.0.1:8666", "[fd00::1]:8666", "host:8666") if set. Otherwise a free
// port at the first of these addresses: of the first interface whose name begins with
// SHMEM_UID_SOCK_IFNAME ("eth", "eth:inet4", "eth:inet6"; also SHMEM_UID_SOCK_IFNAM), of
// MEMSPAN_NET, or, if a secret opens the store, of the first interface that leads to other hosts.
// Else the loopback's, because certificates name addresses and a store without TLS stays on this
// host. kInvalidArgument if a variable is invalid, kUnavailable if the interface or its address
// does not exist.
Result<Endpoint> choose_unique_id_endpoint(bool needs_secret);

}  // namespace memspan
