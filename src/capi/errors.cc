// SPDX-License-Identifier: Apache-2.0
#include "capi/errors.h"

#include <memspan/memspan.h>
#include <smem/host/smem.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>

#include "capi/aclshmem/export.h"
#include "capi/failures.h"
#include "capi/smem/result.h"
#include "core/lifetime.h"

namespace memspan::capi {

const char kNoMemoryMessage[] =
    "out of memory: the system refused what the library needs. Raise the memory limit of the "
    "process, or free memory.";

namespace {

constinit std::atomic<memspan_name_handler_t> name_handler{nullptr};

struct LastError {
  std::string kept;
  std::string taken;
};
// The call that had no memory, not even for LastError; null: another text is kept.
constinit thread_local const char* call_without_memory = nullptr;

// A failure's codes in the API bindings: the only such table.
struct Row {
  Code code;
  int shmem;
  std::int32_t smem;
  int end;  // MEMSPAN_END_..., when it ends the process
};
constexpr std::array<Row, 15> kRows{{
    {Code::kOk, SHMEM_SUCCESS, SMEM_OK, MEMSPAN_END_SYSTEM},
    {Code::kInvalidArgument, SHMEM_INVALID_PARAM, SMEM_INVALID_PARAM, MEMSPAN_END_MISTAKE},
    {Code::kNotFound, SHMEM_INVALID_PARAM, SMEM_NOT_EXIST, MEMSPAN_END_SYSTEM},
    {Code::kUnavailable, SHMEM_INNER_ERROR, SMEM_NOT_STARTED, MEMSPAN_END_MISTAKE},
    {Code::kTimeout, SHMEM_TIMEOUT_ERROR, SMEM_TIMEOUT, MEMSPAN_END_TIMEOUT},
    {Code::kOutOfMemory, SHMEM_MALLOC_FAILED, SMEM_MALLOC_FAILED, MEMSPAN_END_OUT_OF_MEMORY},
    {Code::kNotSupported, SHMEM_NOT_SUPPORTED, SMEM_ERROR, MEMSPAN_END_MISTAKE},
    {Code::kPeerLost, SHMEM_SMEM_ERROR, SMEM_NOT_CONNECTED, MEMSPAN_END_PEER_FAILED},
    {Code::kUnreachable, SHMEM_BOOTSTRAP_ERROR, SMEM_NOT_CONNECTED, MEMSPAN_END_SYSTEM},
    {Code::kStale, SHMEM_INVALID_PARAM, SMEM_NOT_EXIST, MEMSPAN_END_SYSTEM},
    {Code::kAuth, SHMEM_BOOTSTRAP_ERROR, SMEM_ERROR, MEMSPAN_END_SYSTEM},
    {Code::kStoreLost, SHMEM_BOOTSTRAP_ERROR, SMEM_NOT_CONNECTED, MEMSPAN_END_SYSTEM},
    {Code::kForked, SHMEM_INNER_ERROR, SMEM_NOT_STARTED, MEMSPAN_END_MISTAKE},
    {Code::kSystem, SHMEM_INNER_ERROR, SMEM_ERROR, MEMSPAN_END_SYSTEM},
    {Code::kInternal, SHMEM_INNER_ERROR, SMEM_ERROR, MEMSPAN_END_SYSTEM},
}};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (kRows[i].code != static_cast<Code>(i)) return false;
  return kRows.back().code == Code::kInternal;
}
static_assert(is_in_order(), "a row for each Code, in their order");

const Row& row_of(Code code) {
  return kRows[static_cast<std::size_t>(code)];
}

constexpr std::array<std::pair<std::int32_t, const char*>, 14> kSmemTexts{{
    {SMEM_OK, "success"},
    {SMEM_ERROR, "error"},
    {SMEM_INVALID_PARAM, "invalid parameter"},
    {SMEM_MALLOC_FAILED, "out of memory"},
    {SMEM_NO_RESOURCES, "out of a resource other than memory"},
    {SMEM_NOT_STARTED, "not started, or ended"},
    {SMEM_TIMEOUT, "timeout"},
    {SMEM_REPEAT_INVOKE, "called before, and only once is allowed"},
    {SMEM_DUPLICATED, "exists already"},
    {SMEM_NOT_EXIST, "does not exist (any more)"},
    {SMEM_NOT_INIT, "not initialized"},
    {SMEM_RES_IN_USE, "in use"},
    {SMEM_PARTIAL_FAILED, "a part of it failed"},
    {SMEM_NOT_CONNECTED, "not connected (any more)"},
}};

}  // namespace

std::int32_t smem_code(const Status& status) {
  return row_of(status.code()).smem;
}

int end_reason(const Status& status) {
  return row_of(status.code()).end;
}

// Pairs with the release of memspan_set_name_handler().
const char* shown_name(const char* call) {
  const memspan_name_handler_t handler = name_handler.load(std::memory_order_acquire);
  return handler == nullptr ? call : handler(call);
}

void remember_error(const char* call, std::string_view message) {
  thread_object<LastError>().kept = std::string(shown_name(call)) + ": " + std::string(message);
  call_without_memory = nullptr;
}

const char* last_error() try {
  if (call_without_memory != nullptr) remember_error(call_without_memory, kNoMemoryMessage);
  return thread_object<LastError>().kept.c_str();
} catch (const std::bad_alloc&) {
  return call_without_memory == nullptr ? "" : kNoMemoryMessage;
}

void keep_out_of_memory(const char* call) noexcept {
  keep_smem_code(SMEM_MALLOC_FAILED);
  call_without_memory = call;
  static_cast<void>(last_error());  // keeps the text now if it can
}

void log_out_of_memory(const char* call, decltype(log_line)& log, LogLevel level) noexcept {
  char line[256];
  std::snprintf(line, sizeof line, "%s: %s", shown_name(call), kNoMemoryMessage);
  try {
    log(level, line);
  } catch (const std::bad_alloc&) {
    dprintf(STDERR_FILENO, "memspan: %s\n", line);
  }
}

void report_out_of_memory(const char* function) noexcept {
  keep_out_of_memory(name_of_failed(function));
  log_out_of_memory(name_of_failed(function), log_line_limited, LogLevel::kError);
}

int shmem_failure(const char* call, int code, std::string_view message) {
  remember_error(call, message);
  log_line(LogLevel::kError, last_error());
  return code;
}

int shmem_result(const char* call, const Status& status) {
  if (status.is_ok()) return 0;
  end_process_if_asked();
  return shmem_failure(call, row_of(status.code()).shmem, status.message());
}

}  // namespace memspan::capi

using namespace memspan::capi;

MEMSPAN_EXPORT void memspan_set_name_handler(memspan_name_handler_t handler) {
  name_handler.store(handler, std::memory_order_release);
}

MEMSPAN_EXPORT const char* memspan_last_error(void) {
  return last_error();
}

MEMSPAN_EXPORT const char* smem_get_error_string(int32_t code) {
  for (const auto& [known, text] : kSmemTexts)
    if (known == code) return text;
  return "unknown error";
}

MEMSPAN_EXPORT const char* smem_get_and_clear_last_err_msg(void) try {
  keep_smem_code(SMEM_OK);
  static_cast<void>(last_error());
  auto& [kept, taken] = memspan::thread_object<LastError>();
  taken = std::exchange(kept, {});
  return call_without_memory == nullptr ? taken.c_str() : last_error();
} catch (const std::bad_alloc&) {
  return last_error();
}
