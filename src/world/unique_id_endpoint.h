// SPDX-License-Identifier: Apache-2.0
// Where the store of a unique id listens: who is given the id goes there, from this host or
// another.
#pragma once

#include "core/status.h"
#include "store/endpoint.h"

namespace memspan {

// SHMEM_UID_SESSION_ID ("10.0.0.1:8666", "[fd00::1]:8666", "host:8666"); else an address, with a
// port that is free, of the first interface whose name begins as SHMEM_UID_SOCK_IFNAME says ("eth",
// "eth:inet4", "eth:inet6"; also SHMEM_UID_SOCK_IFNAM), of what MEMSPAN_NET names, or, when a
// secret opens the store, of the first interface that leads to other hosts; else the loopback's, as
// certificates name addresses, and what has no TLS stays on this host. kInvalidArgument when a
// variable says something else, kUnavailable when there is no such interface or it has no such
// address.
Result<Endpoint> choose_unique_id_endpoint(bool needs_secret);

}  // namespace memspan
