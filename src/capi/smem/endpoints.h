// SPDX-License-Identifier: Apache-2.0
// The endpoints that programs made, and their requests.
#pragma once

#include "capi/handle_table.h"
#include "capi/smem/fork_aware_singleton.h"
#include "capi/smem/result.h"
#include "fabric/transfer/transfer_endpoint.h"

namespace memspan::capi {

using Endpoints = HandleTable<transfer::Endpoint, HandleKind::kEndpoint>;
// A child of fork() has none of its parent's.
inline Endpoints& endpoints() {
  return fork_aware_singleton<Endpoints>();
}

// Between smem_trans_init() and smem_trans_uninit(); a child of fork() need not say it again.
inline std::atomic<bool>& trans_is_ready() {
  static std::atomic<bool> is_ready{false};
  return is_ready;
}
inline std::int32_t trans_not_ready(const char* call) {
  return smem_failure(call, SMEM_NOT_INIT,
                      "smem trans not initialized yet: smem_trans_init() comes first");
}

inline Status check_text(const char* what, const char* text) {
  if (text != nullptr && text[0] != '\0') return Status::ok();
  return invalid(fmt::format("invalid {}, which is null/empty", what));
}

// For a handle that names no endpoint. Callers check the other arguments first.
inline std::int32_t bad_endpoint(const char* call, const void* handle) {
  if (handle == nullptr) return bad_handle(call, handle, "endpoint");
  if (!trans_is_ready()) return trans_not_ready(call);
  return smem_failure(
      call, SMEM_INVALID_PARAM,
      fmt::format("not found handle {}: get entry by handle failed; a child of fork() "
                  "has none of its parent's",
                  handle));
}

// `action(endpoint)` gives a Status or a code.
template <typename Action>
std::int32_t with_endpoint(const char* call, const void* handle, Action action) try {
  auto endpoint = endpoints().use(handle);
  return endpoint ? smem_result(call, action(*endpoint)) : bad_endpoint(call, handle);
}
MEMSPAN_CATCH_IN(call, SMEM_MALLOC_FAILED)

// The same when the other arguments are good.
template <typename Action>
std::int32_t do_at_endpoint(const char* call, const void* handle, const Status& arguments,
                            Action action) {
  if (handle != nullptr && !arguments.is_ok()) return smem_result(call, arguments);
  return with_endpoint(call, handle, action);
}

// The requests that programs prepared.
struct HeldRequest {
  const void* endpoint;                        // a handle, which may be stale
  std::shared_ptr<transfer::Request> request;  // shared with the endpoint's worker while posted
};

using Requests = HandleTable<HeldRequest, HandleKind::kRequest, 16384>;
// A child of fork() has none of its parent's.
inline Requests& requests() {
  return fork_aware_singleton<Requests>();
}
// `action(held)` gives a Status or a code.
template <typename Action>
std::int32_t with_request(const char* call, const void* handle, Action action) try {
  auto held = requests().use(handle);
  return held ? smem_result(call, action(*held)) : bad_handle(call, handle, "request");
}
MEMSPAN_CATCH_IN(call, SMEM_MALLOC_FAILED)

}  // namespace memspan::capi
