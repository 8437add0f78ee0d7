// SPDX-License-Identifier: Apache-2.0
// How a function of the MemFabric face is defined, and what it returns.
#pragma once

#include <smem/host/smem.h>

#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "capi/errors.h"
#include "capi/handle_table.h"
#include "capi/out_of_memory.h"
#include "capi/smem/fork_aware_singleton.h"
#include "core/clock.h"
#include "core/status.h"
#include "observe/counters.h"

namespace memspan::capi {

inline Status null_argument(const char* name) {
  return invalid(std::string("invalid param, ") + name + " is NULL");
}
// The deadline that a time-out in milliseconds says; UINT32_MAX: none.
inline Deadline deadline_of(std::uint32_t timeout_ms) {
  return timeout_ms == UINT32_MAX ? Deadline::never()
                                  : Deadline::after(std::chrono::milliseconds(timeout_ms));
}

// The sum of `count` sizes, for counted calls; 0 while none is counted.
inline std::uint64_t counted_bytes(const std::uint64_t* sizes, std::size_t count) {
  return is_recording() ? std::accumulate(sizes, sizes + count, std::uint64_t{0}) : 0;
}

// SMEM_OK; else the code that fits, and the text is kept and logged.
std::int32_t smem_result(const char* call, const Status& status,
                         std::int32_t if_unavailable = SMEM_NOT_STARTED);
// For a code that a function has found itself.
inline std::int32_t smem_result(const char* /*call*/, std::int32_t code, std::int32_t /*if*/ = 0) {
  return code;
}
// For a caller that waits again later: a timeout is kept but not logged.
struct OfTurn {
  Status status;
};
std::int32_t smem_result(const char* call, const OfTurn& wait,
                         std::int32_t if_unavailable = SMEM_NOT_STARTED);
// Like smem_result(), with a code that is more exact than the Status's own.
std::int32_t smem_failure(const char* call, std::int32_t code, std::string_view message);
// Sets the result of smem_get_last_err_code().
void keep_smem_code(std::int32_t code);
// For a handle that names no `what` ("stream"), or is NULL.
std::int32_t bad_handle(const char* call, const void* handle, std::string_view what);

// Calls `action(object)`, which gives a Status or a code, with what a handle of a Table names.
template <typename Table, typename Action>
std::int32_t with(const char* call, const void* handle, Action action,
                  std::int32_t if_unavailable = SMEM_NOT_STARTED) try {
  Table& table = fork_aware_singleton<Table>();
  if (const auto used = table.use(handle)) return smem_result(call, action(*used), if_unavailable);
  if constexpr (requires { table.no_such(call, handle); })
    return table.no_such(call, handle);
  else
    return bad_handle(call, handle, Table::kName);
}
MEMSPAN_CATCH_IN(call, SMEM_MALLOC_FAILED)

// The value of `action(object)`, a Result; the given one if it failed, which is kept.
template <typename Table, typename Value, typename Action>
Value value_with(const char* call, const void* handle, Value value, Action action) {
  with<Table>(call, handle, [&](auto& object) {
    MEMSPAN_PASS_ASSIGN(value, action(object));
    return Status::ok();
  });
  return value;
}

// Writes the handle of a new object to `into`, unless the table is full.
template <typename Table, typename Object>
std::int32_t add_object(const char* call, Table& table, std::unique_ptr<Object> object,
                        void** into) {
  void* const handle = table.add(std::move(object));
  if (handle == nullptr)
    return smem_failure(
        call, SMEM_NO_RESOURCES,
        "there are " + std::to_string(Table::kMost) + " " + Table::kName + "s already, the most");
  *into = handle;
  return SMEM_OK;
}

}  // namespace memspan::capi
