// SPDX-License-Identifier: Apache-2.0
// What our failures are called in the API bindings, and the text that stays behind.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/status.h"

namespace memspan::capi {

// The return codes of the CANN SHMEM API (SHMEM_... and ACLSHMEM_...).
enum class ShmemCode : int {
  kSuccess = 0,
  kInvalidParam = -1,
  kInvalidValue = -2,
  kSmemError = -3,
  kInnerError = -4,
  kNotInited = -5,
  kBootstrapError = -6,
  kTimeoutError = -7,
  kMallocFailed = -8,
  kNotSupported = -100,
};

// What a failure is called by the API of CANN SHMEM and of MemFabric (SMEM_...), and why it ends
// the process (MEMSPAN_END_...).
ShmemCode shmem_code(const Status& status);
std::int32_t smem_code(const Status& status);
int end_reason(const Status& status);
const char* smem_code_text(std::int32_t code);

// The name of a call in the language that it was made from (memspan/memspan.h).
using NameHandler = const char* (*)(const char* call);
void set_name_handler(NameHandler handler);
const char* shown_name(const char* call);

// Keeps "call: message" for memspan_last_error() of this thread.
void remember_error(const char* call, std::string_view message);
// What is kept; valid until this thread's next failure.
const char* last_error();
// The same, and from now on nothing is kept.
const char* take_last_error();

// What a call of the CANN SHMEM API returns: 0 when ok; else the text is kept and logged. Ends the
// process instead when a peer has asked the whole job to end.
int shmem_result(const char* call, const Status& status);
// The same with a code that says more than the Status's own.
int shmem_failure(const char* call, ShmemCode code, std::string_view message);

}  // namespace memspan::capi
