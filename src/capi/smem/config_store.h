// SPDX-License-Identifier: Apache-2.0
// The stores that this process hosts.
#pragma once

#include "core/status.h"
#include "store/endpoint.h"
#include "store/security.h"

namespace memspan::capi {

// kInvalidArgument names what is wrong; null and empty ones, too.
Result<Endpoint> read_url(const char* url);

// Until smem_destroy_config_store() or the end of the process. Ok when this process serves the
// endpoint already, kUnavailable when another socket has it. Thread-safe.
Status host_store(const Endpoint& endpoint, const StoreSecurity& security);

}  // namespace memspan::capi
