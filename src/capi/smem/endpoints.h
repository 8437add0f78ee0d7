// SPDX-License-Identifier: Apache-2.0
// The endpoints that programs made, and their requests.
#pragma once

#include "capi/smem/result.h"
#include "fabric/transfer/transfer_endpoint.h"

namespace memspan::capi {

// Between smem_trans_init() and smem_trans_uninit(); a child of fork() need not say it again.
inline constinit std::atomic<bool> trans_is_ready{false};
inline std::int32_t trans_not_ready(const char* call) {
  return smem_failure(call, SMEM_NOT_INIT,
                      "smem trans not initialized yet: smem_trans_init() comes first");
}

inline Status check_text(const char* what, const char* text) {
  if (text != nullptr && text[0] != '\0') return Status::ok();
  return invalid("invalid {}, which is null/empty", what);
}

struct Endpoints : HandleTable<transfer::Endpoint, HandleKind::kEndpoint> {
  // For a handle that names no endpoint. Callers check the other arguments first.
  std::int32_t no_such(const char* call, const void* handle) const {
    if (handle == nullptr) return bad_handle(call, handle, kName);
    if (!trans_is_ready) return trans_not_ready(call);
    return smem_failure(
        call, SMEM_INVALID_PARAM,
        fmt::format("not found handle {}: get entry by handle failed; a child of fork() "
                    "has none of its parent's",
                    handle));
  }
};
// A child of fork() has none of its parent's.
inline constexpr auto& endpoints = fork_aware_singleton<Endpoints>;

// Calls `action(endpoint)` when the other arguments are good, which `check()` says.
template <typename Check, typename Action>
std::int32_t do_at_endpoint(const char* call, const void* handle, Check check, Action action) try {
  const Status arguments = handle == nullptr ? Status::ok() : check();
  return arguments.is_ok() ? with<Endpoints>(call, handle, action) : smem_result(call, arguments);
}
MEMSPAN_CATCH_IN(call, SMEM_MALLOC_FAILED)

// The requests that programs prepared.
struct HeldRequest {
  const void* endpoint;                        // a handle, which may be stale
  std::shared_ptr<transfer::Request> request;  // shared with the endpoint's worker while posted
};

using Requests = HandleTable<HeldRequest, HandleKind::kRequest, 16384>;
// A child of fork() has none of its parent's.
inline constexpr auto& requests = fork_aware_singleton<Requests>;
}  // namespace memspan::capi
