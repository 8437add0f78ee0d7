// SPDX-License-Identifier: Apache-2.0
// The endpoints that programs made.
#pragma once

#include "capi/smem/object_table.h"
#include "fabric/transfer/endpoint.h"

namespace memspan::capi {

using Endpoints = ObjectTable<transfer::Endpoint, ObjectKind::kEndpoint>;
// Of this process: a child of fork() has none of its parent's.
Endpoints& endpoints();

// SMEM_OK, or what is wrong with the handle, for a call that found nothing by it.
std::int32_t bad_endpoint(const char* call, const void* handle);

}  // namespace memspan::capi
