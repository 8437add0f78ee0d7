// SPDX-License-Identifier: Apache-2.0
// How a function of the MemFabric face is defined, and what it returns.
#pragma once

#include <smem/host/smem.h>

#include <string_view>

#include "core/status.h"

#define MEMSPAN_EXPORT extern "C" __attribute__((visibility("default")))

namespace memspan::capi {

// The code that fits.
std::int32_t smem_code(const Status& status);
// SMEM_OK; else the code that fits, and the text is kept and logged.
std::int32_t smem_result(const char* call, const Status& status);
// The same with a code that says more than the Status's own.
std::int32_t smem_failure(const char* call, std::int32_t code, std::string_view message);
// For a handle that names no `what` ("stream"), or is NULL.
std::int32_t bad_handle(const char* call, const void* handle, std::string_view what);

}  // namespace memspan::capi
