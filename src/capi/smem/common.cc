// SPDX-License-Identifier: Apache-2.0
// What the parts of MemFabric share but the config store: begin, end and the log.
#include <fmt/format.h>

#include "capi/smem/result.h"
#include "core/log.h"

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int32_t smem_init([[maybe_unused]] uint32_t flags) try {
  log_line(LogLevel::kInfo, "memspan " MEMSPAN_VERSION ", MemFabric");
  return SMEM_OK;
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT void smem_uninit(void) {}

MEMSPAN_EXPORT int32_t smem_set_extern_logger(void (*func)(int level, const char* msg)) try {
  if (func == nullptr)
    return smem_failure("smem_set_extern_logger", SMEM_INVALID_PARAM,
                        "invalid param, func is NULL");
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
