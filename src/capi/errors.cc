// SPDX-License-Identifier: Apache-2.0
#include "capi/errors.h"

#include <memspan/memspan.h>

#include <string>
#include <utility>

#include "capi/failures.h"
#include "core/log.h"

namespace memspan::capi {
namespace {

thread_local std::string kept;
thread_local std::string taken;

}  // namespace

ShmemCode shmem_code(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return ShmemCode::kSuccess;
    case Code::kInvalidArgument:
    case Code::kNotFound:
    case Code::kStale:
      return ShmemCode::kInvalidParam;
    case Code::kTimeout:
      return ShmemCode::kTimeoutError;
    case Code::kOutOfMemory:
      return ShmemCode::kMallocFailed;
    case Code::kNotSupported:
      return ShmemCode::kNotSupported;
    case Code::kPeerLost:
      return ShmemCode::kSmemError;
    case Code::kUnreachable:
    case Code::kAuth:
    case Code::kStoreLost:
      return ShmemCode::kBootstrapError;
    case Code::kUnavailable:
    case Code::kForked:
    case Code::kSystem:
    case Code::kInternal:
      return ShmemCode::kInnerError;
  }
  return ShmemCode::kInnerError;
}

void remember_error(const char* call, std::string_view message) {
  kept = std::string(call) + ": " + std::string(message);
}

const char* last_error() {
  return kept.c_str();
}

const char* take_last_error() {
  taken = std::exchange(kept, {});
  return taken.c_str();
}

int shmem_failure(const char* call, ShmemCode code, std::string_view message) {
  remember_error(call, message);
  log_line(LogLevel::kError, kept);
  return static_cast<int>(code);
}

int shmem_result(const char* call, const Status& status) {
  if (status.is_ok()) return 0;
  end_process_if_asked();
  return shmem_failure(call, shmem_code(status), status.message());
}

}  // namespace memspan::capi

extern "C" __attribute__((visibility("default"))) const char* memspan_last_error(void) {
  return memspan::capi::last_error();
}
