// SPDX-License-Identifier: Apache-2.0
// The endpoints that programs made.
#pragma once

#include <fmt/format.h>

#include "capi/smem/object_table.h"
#include "capi/smem/of_process.h"
#include "capi/smem/result.h"
#include "fabric/transfer/endpoint.h"

namespace memspan::capi {

using Endpoints = ObjectTable<transfer::Endpoint, ObjectKind::kEndpoint>;
// A child of fork() has none of its parent's.
inline Endpoints& endpoints() {
  return of_process<Endpoints>();
}

// For a handle that names none.
inline std::int32_t bad_endpoint(const char* call, const void* handle) {
  if (handle == nullptr) return bad_handle(call, handle, "endpoint");
  return smem_failure(call, SMEM_NOT_EXIST,
                      fmt::format("not found handle {}: get entry by handle failed", handle));
}

// `action(endpoint)` gives the code.
template <typename Action>
std::int32_t with_endpoint(const char* call, const void* handle, Action action) {
  auto endpoint = endpoints().use(handle);
  return endpoint ? action(*endpoint) : bad_endpoint(call, handle);
}

}  // namespace memspan::capi
