// SPDX-License-Identifier: Apache-2.0
// The requests that programs prepared.
#pragma once

#include <memory>

#include "capi/smem/object_table.h"
#include "capi/smem/of_process.h"
#include "capi/smem/result.h"
#include "fabric/transfer/request.h"

namespace memspan::capi {

struct HeldRequest {
  const void* endpoint;                        // a handle, which may be stale
  std::shared_ptr<transfer::Request> request;  // shared with the endpoint's worker while posted
};

using Requests = ObjectTable<HeldRequest, ObjectKind::kRequest, 16384>;

// A child of fork() has none of its parent's.
inline Requests& requests() {
  return of_process<Requests>();
}

}  // namespace memspan::capi
