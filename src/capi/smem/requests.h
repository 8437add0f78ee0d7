// SPDX-License-Identifier: Apache-2.0
// The requests that programs prepared.
#pragma once

#include <memory>

#include "capi/handle_table.h"
#include "capi/smem/fork_aware_singleton.h"
#include "capi/smem/result.h"
#include "fabric/transfer/request.h"

namespace memspan::capi {

struct HeldRequest {
  const void* endpoint;                        // a handle, which may be stale
  std::shared_ptr<transfer::Request> request;  // shared with the endpoint's worker while posted
};

using Requests = HandleTable<HeldRequest, HandleKind::kRequest, 16384>;

// A child of fork() has none of its parent's.
inline Requests& requests() {
  return fork_aware_singleton<Requests>();
}

}  // namespace memspan::capi
