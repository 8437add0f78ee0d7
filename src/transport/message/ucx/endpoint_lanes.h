// SPDX-License-Identifier: Apache-2.0
// The lanes of an endpoint, as UCX reports them.
#pragma once

#include <ucp/api/ucp.h>

#include "transport/message/ucx/native_lanes.h"

namespace memspan::ucx {

// The caller holds the worker's mutex.
NativeLanes lanes_of(ucp_ep_h endpoint);

}  // namespace memspan::ucx
