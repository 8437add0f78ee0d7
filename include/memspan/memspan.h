/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of memspan beside the interfaces that it implements. C99 or C++11.
 */
#ifndef MEMSPAN_MEMSPAN_H
#define MEMSPAN_MEMSPAN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why the last call of this thread that returned an error code (or NULL) did so: one line for a
 * person. Never NULL; empty before the first failure. Valid until this thread's next failure. */
const char* memspan_last_error(void);

/* For bindings: keeps "call: message" as this thread's failure, for memspan_last_error() and
 * smem_get_last_err_msg(), logs it, and returns the code. Both are copied. Thread-safe. */
int memspan_keep_failure(const char* call, int code, const char* message);

/* The address of this process's symmetric heap; NULL in no job. Valid until the job's end. */
void* memspan_heap_base(void);

/* For bindings whose objects may outlive the job: the pages of `bytes` (1 and more) of the
 * symmetric heap, this process's or a peer's as it is mapped here, stay when the job ends, as
 * private memory with the bytes that they have then, or zeros when memory is short. The caller
 * frees them with munmap(), in whole pages. Not while another thread of this process ends the job.
 * Returns 0, or a code below 0 when that is no such memory or there is no job. */
int memspan_keep_pages(const void* address, size_t bytes);

/* The reason why a call fails. */
enum {
  MEMSPAN_END_MISTAKE = 0,     /* of the program: an argument, a call before the start */
  MEMSPAN_END_PEER_FAILED = 1, /* another process died */
  MEMSPAN_END_TIMEOUT = 2,
  MEMSPAN_END_SYSTEM = 3,       /* the machine or the store refuses */
  MEMSPAN_END_OUT_OF_MEMORY = 4 /* the process can get no more */
};

/* For bindings of languages with exceptions. OpenSHMEM's and CANN SHMEM's calls that return nothing
 * end the process when they fail; before that, they call `handler` on the calling thread with the
 * call's name, the reason and the message; both texts are valid during the call only. It may throw
 * a C++ exception, which passes through the library to the caller: the call then had no effect, or
 * a part of it. When it returns, the process ends. NULL, as at start: no handler. Thread-safe. */
typedef void (*memspan_end_handler_t)(const char* call, int reason, const char* message);
void memspan_set_end_handler(memspan_end_handler_t handler);
/* A handler for the calling thread only, called before the other one: for a binding's own calls, in
 * a process in which another binding has set the process's handler. Returns the thread's handler
 * before, NULL for none, which is to be set again afterwards. */
memspan_end_handler_t memspan_set_thread_end_handler(memspan_end_handler_t handler);

/* For bindings whose functions have other names than C's: messages of a failure name the call as
 * `handler` says, on the thread that made it. It gets C's name and returns that or another string,
 * which lives as long as the program. NULL, as at start: C's names. Thread-safe. */
typedef const char* (*memspan_name_handler_t)(const char* call);
void memspan_set_name_handler(memspan_name_handler_t handler);

/* For bindings of languages in which a signal may end any wait, as Python's Ctrl-C. While the
 * calling thread waits in a call, for peers, the store or a transfer, `handler` is called on it
 * about every 40 ms. 0: the wait continues. Another number: the call and all further waits of the
 * thread fail soon, until a handler is set again, with the code or the end (MEMSPAN_END_SYSTEM) of
 * a system that refuses; a barrier or collective that was left so leaves its team or group out of
 * step. The handler may call nothing of the library that waits or ends something. It is called with
 * none of the library's locks but those of starting and ending a job. Returns the thread's handler
 * before, NULL for none, which is to be set again afterwards. */
typedef int (*memspan_interrupt_handler_t)(void);
memspan_interrupt_handler_t memspan_set_thread_interrupt_handler(
    memspan_interrupt_handler_t handler);

#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_MEMSPAN_H */
