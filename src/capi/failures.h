// SPDX-License-Identifier: Apache-2.0
// How a call that cannot report an error ends the process: one line that names this process, the
// call and the reason, then code 1, without exit handlers. The job's other processes notice. Only
// the death of a peer can be survived, by a program that sets a handler.
#pragma once

#include <cstddef>

#include "core/status.h"

namespace memspan::inline world {
class World;
}

namespace memspan::capi {

extern const char kNotInAJob[];  // the end of a message (core/status.h)

// When a peer has asked the whole job to end it ends quietly, with that peer's code. Calls the
// program's handlers before the end; they may throw (memspan/memspan.h).
[[noreturn, gnu::cold]] void end_process(const char* call, const Status& status);

// Ends the process if a peer has asked the whole job to end.
void end_process_if_asked();
// Asks the whole job to end.
[[noreturn]] void end_job(int code);

// Called at a peer's death instead of ending the process, with the call, the peer and a sentence.
// Null: the process ends.
using ErrorHandler = void (*)(const char* call, int pe, const char* message);
void set_error_handler(ErrorHandler handler);
// Lets the waits of a job survive deaths if an error handler is set.
void apply_error_handler(World& world);

// Ends the process, or calls the error handler for a peer's death; the call then returns without
// its effect.
[[gnu::cold]] void fail(const char* call, const Status& status);

// True when ok; false, if it returns at all, after the error handler ran.
inline bool require(const char* call, const Status& status) {
  if (status.is_ok()) [[likely]]
    return true;
  fail(call, status);
  return false;
}

// Says why RouteTable::find() failed: before init, peer out of range, or address not symmetric.
[[noreturn, gnu::cold]] void end_for_bad_access(const char* call, const char* argument,
                                                const void* address, std::size_t bytes, int pe);
// A local buffer, or the place for a result, is NULL or in the first page, where nothing is.
[[noreturn, gnu::cold]] void end_for_null(const char* call, const char* argument,
                                          const void* address);
[[noreturn, gnu::cold]] void end_for_misaligned_word(const char* call, const char* argument,
                                                     const void* address, std::size_t bytes);
// The host itself would have to load or store device memory.
[[noreturn, gnu::cold]] void end_for_device_memory(const char* call, const char* argument,
                                                   const void* address);
[[noreturn, gnu::cold]] void end_for_bad_number(const char* call, const char* argument, long value,
                                                long least, long most);
[[noreturn, gnu::cold]] void end_for_bad_handle(const char* call, const char* argument,
                                                const void* handle);

// Ends the process when it is in no job.
void require_started(const char* call);

}  // namespace memspan::capi
