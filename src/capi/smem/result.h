// SPDX-License-Identifier: Apache-2.0
// How a function of the MemFabric face is defined, and what it returns.
#pragma once

#include <smem/host/smem.h>

#include <string>
#include <string_view>
#include <utility>

#include "capi/errors.h"
#include "capi/out_of_memory.h"
#include "core/clock.h"
#include "core/status.h"

#define MEMSPAN_EXPORT extern "C" __attribute__((visibility("default")))

namespace memspan::capi {

inline Status invalid(std::string message) {
  return {Code::kInvalidArgument, std::move(message)};
}

// The deadline that a time-out in milliseconds says; UINT32_MAX: none.
inline Deadline deadline_of(std::uint32_t timeout_ms) {
  return timeout_ms == UINT32_MAX ? Deadline::never()
                                  : Deadline::after(std::chrono::milliseconds(timeout_ms));
}

// SMEM_OK; else the code that fits, and the text is kept and logged.
std::int32_t smem_result(const char* call, const Status& status);
// Like smem_result(), for a caller that waits again later: a timeout is kept but not logged.
std::int32_t smem_result_of_turn(const char* call, const Status& status);
// Like smem_result(), with a code that is more exact than the Status's own.
std::int32_t smem_failure(const char* call, std::int32_t code, std::string_view message);
// Sets the result of smem_get_last_err_code().
void keep_smem_code(std::int32_t code);
// For a handle that names no `what` ("stream"), or is NULL.
std::int32_t bad_handle(const char* call, const void* handle, std::string_view what);

}  // namespace memspan::capi
