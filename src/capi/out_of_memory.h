// SPDX-License-Identifier: Apache-2.0
// The beginning of each exported function, and the end of each that may allocate: std::bad_alloc
// leaves none of them, nor does std::length_error, for a count beyond what a container can hold.
//
//   MEMSPAN_EXPORT int32_t smem_x(int y) try {
//     return ...;
//   }
//   MEMSPAN_CATCH(SMEM_MALLOC_FAILED)
//
// tests/capi/check_exceptions.py finds a function without it. Functions of the data path have none:
// what they call out of line (move_slow_path(), fail()) catches, so that their code stays as it is.
#pragma once

#include <new>
#include <stdexcept>

#include "core/log.h"

#define MEMSPAN_EXPORT extern "C" __attribute__((visibility("default")))

namespace memspan::capi {

extern const char kNoMemoryMessage[];  // the message

// All of these work without any memory. Keeps the message for memspan_last_error(), or logs it.
void keep_out_of_memory(const char* call) noexcept;
void log_out_of_memory(const char* call, decltype(log_line)& log, LogLevel level) noexcept;

// Keeps and logs that memory was short in a function, whose __func__ may have the p of profiling.
[[gnu::cold]] void report_out_of_memory(const char* function) noexcept;
// For a call that cannot report: ends the process as end_process() does.
[[noreturn, gnu::cold]] void end_out_of_memory(const char* function);

}  // namespace memspan::capi

#define MEMSPAN_CATCH_BY_(...)       \
  catch (const std::bad_alloc&) {    \
    __VA_ARGS__;                     \
  }                                  \
  catch (const std::length_error&) { \
    __VA_ARGS__;                     \
  }
// Reports, and returns what follows, if anything.
#define MEMSPAN_CATCH_IN(call, ...) \
  MEMSPAN_CATCH_BY_(::memspan::capi::report_out_of_memory(call); return __VA_ARGS__)
#define MEMSPAN_CATCH(...) MEMSPAN_CATCH_IN(__func__, __VA_ARGS__)
#define MEMSPAN_CATCH_AND_END(call) MEMSPAN_CATCH_BY_(::memspan::capi::end_out_of_memory(call))
