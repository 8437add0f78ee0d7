// SPDX-License-Identifier: Apache-2.0
// What the parts of MemFabric share: results, begin, end and the log.
#include "capi/smem/result.h"

#include <fmt/format.h>
#include <memspan/memspan.h>

#include "core/log.h"

namespace memspan::capi {
namespace {

thread_local std::int32_t last_code = SMEM_OK;

}  // namespace

void keep_smem_code(std::int32_t code) {
  last_code = code;
}

std::int32_t smem_result(const char* call, const OfTurn& wait, std::int32_t if_unavailable) {
  if (wait.status.code() != Code::kTimeout) return smem_result(call, wait.status, if_unavailable);
  remember_error(call, wait.status.message());
  last_code = SMEM_TIMEOUT;
  return last_code;
}

std::int32_t smem_failure(const char* call, std::int32_t code, std::string_view message) {
  remember_error(call, message);
  last_code = code;
  log_line_limited(LogLevel::kError, last_error());
  return code;
}

std::int32_t bad_handle(const char* call, const void* handle, std::string_view what) {
  if (handle == nullptr)
    return smem_failure(call, SMEM_INVALID_PARAM, "invalid param, handle is NULL");
  return smem_failure(
      call, SMEM_NOT_EXIST,
      fmt::format(
          "input handle is invalid: {} names no {} (any more); a child of fork() has none of "
          "its parent's",
          handle, what));
}

std::int32_t smem_result(const char* call, const Status& status, std::int32_t if_unavailable) {
  if (status.is_ok()) return SMEM_OK;
  const bool is_unavailable = status.code() == Code::kUnavailable;
  return smem_failure(call, is_unavailable ? if_unavailable : smem_code(status), status.message());
}

}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int memspan_keep_failure(const char* call, int code, const char* message) try {
  return smem_failure(call, code, message);
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT const char* smem_get_last_err_msg(void) {
  return last_error();
}

MEMSPAN_EXPORT int32_t smem_get_last_err_code(void) {
  return last_code;
}

MEMSPAN_EXPORT int32_t smem_init([[maybe_unused]] uint32_t flags) try {
  log_line(LogLevel::kInfo, "memspan " MEMSPAN_VERSION ", MemFabric");
  return SMEM_OK;
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT void smem_uninit(void) {}

MEMSPAN_EXPORT int32_t smem_set_extern_logger(void (*func)(int level, const char* msg)) try {
  if (func == nullptr) return smem_result("smem_set_extern_logger", null_argument("func"));
  set_log_sink(func);
  return SMEM_OK;
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t smem_set_log_level(int level) try {
  if (level < 0 || level > static_cast<int>(LogLevel::kFatal))
    return smem_failure("smem_set_log_level", SMEM_INVALID_PARAM,
                        fmt::format("invalid param, level is {}, allowed are 0 to 4", level));
  set_log_level(static_cast<LogLevel>(level));
  return SMEM_OK;
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)
