// SPDX-License-Identifier: Apache-2.0
// What our failures are called in the API bindings, and the text that stays behind.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

#include "core/status.h"

namespace memspan::capi {

// Reads enumerations that callers give. C code may fill one with any number, which C++ may not load
// as the enumeration.
template <typename Enumeration>
unsigned number_of(const Enumeration& given) {
  static_assert(sizeof given == sizeof(unsigned));
  unsigned number = 0;
  std::memcpy(&number, &given, sizeof number);
  return number;
}

// A caller's mistake.
inline Status invalid(std::string message) {
  return {Code::kInvalidArgument, std::move(message)};
}

template <typename Value, typename... Values>
Status invalid(fmt::format_string<const Value&, const Values&...> text, const Value& value,
               const Values&... values) {
  return invalid(fmt::format(text, value, values...));
}

// The code of a failure in MemFabric's API (SMEM_...), and the reason with which it ends the
// process (MEMSPAN_END_...).
std::int32_t smem_code(const Status& status);
int end_reason(const Status& status);

// The name of a call in the language that it was made from (memspan/memspan.h).
const char* shown_name(const char* call);
// The name of an exported function by its __func__: OpenSHMEM's have a p in front.
inline const char* name_of_failed(const char* function) {
  return function[0] == 'p' ? function + 1 : function;
}

// Keeps "call: message" for memspan_last_error() of this thread.
void remember_error(const char* call, std::string_view message);
// Returns the kept text; valid until this thread's next failure.
const char* last_error();

// Returns the result of a CANN SHMEM call (SHMEM_...): 0 when ok; else it keeps and logs the text.
// Ends the process instead when a peer has asked the whole job to end.
int shmem_result(const char* call, const Status& status);
// Like shmem_result(), with a code that is more exact than the Status's own.
int shmem_failure(const char* call, int code, std::string_view message);
template <typename Value, typename... Values>
int shmem_failure(const char* call, int code,
                  fmt::format_string<const Value&, const Values&...> text, const Value& value,
                  const Values&... values) {
  return shmem_failure(call, code, fmt::format(text, value, values...));
}

}  // namespace memspan::capi
