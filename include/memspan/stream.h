/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams of the host device: what is given to a stream is done in that order, by a thread of the
 * stream, while the caller continues. smem_trans_*_submit() takes one as its `stream`. C99 or
 * C++11. memspan's own.
 *
 * Thread-safe. Functions that return a code return 0 or a code of smem/host/smem.h, and
 * memspan_last_error() says why in a sentence. A child of fork() has no streams.
 */
#ifndef MEMSPAN_STREAM_H
#define MEMSPAN_STREAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NULL is invalid. */
typedef void* memspan_stream_t;
typedef void* memspan_event_t;

/* The thread begins with the first work. */
int32_t memspan_stream_create(memspan_stream_t* stream);
/* The one of calls that name none (CANN SHMEM's and acl/acl.h's NULL), made at the first call; it
 * is not destroyed. NULL when there are too many streams. */
memspan_stream_t memspan_stream_default(void);
/* Waits until all its work is done, whose failures are then lost. */
int32_t memspan_stream_destroy(memspan_stream_t stream);
/* 0: all its work is done; MEMSPAN_STREAM_BUSY: not yet; less than 0: a bad handle. */
#define MEMSPAN_STREAM_BUSY 1
int32_t memspan_stream_query(memspan_stream_t stream);
/* Until all that was given before is done, at most timeout_ms milliseconds (UINT32_MAX: for as long
 * as it takes): SMEM_TIMEOUT leaves everything as it was, and it may be called again. The first
 * failure of work since the last synchronisation, which is then forgotten. */
int32_t memspan_stream_synchronize(memspan_stream_t stream, uint32_t timeout_ms);
/* Runs function(context) in the stream's order; what it returns other than 0 is a failure. It must
 * not wait for the stream. */
int32_t memspan_stream_call(memspan_stream_t stream, int32_t (*function)(void* context),
                            void* context);
/* Copies `bytes` of this process's memory in the stream's order; both places stay as they are until
 * then. An address without memory ends the process, as with memcpy(). With MEMSPAN_DEVICE=cuda
 * either place may be memory of a GPU. */
int32_t memspan_stream_copy(memspan_stream_t stream, void* dest, const void* source, size_t bytes);
/* Runs kernel(arguments) once for each of `blocks` blocks, 1 to 65536, on threads of the process,
 * in the stream's order; <memspan/kernel.h> has what it may call, and <memspan/launch.h> the form
 * for C++. Then release(arguments), unless that is NULL; also when this call fails. */
int32_t memspan_stream_launch(memspan_stream_t stream, unsigned blocks,
                              void (*kernel)(void* arguments), void* arguments,
                              void (*release)(void* arguments));

/* Events: places in a stream's work. One that was never recorded counts as reached. */
int32_t memspan_event_create(memspan_event_t* event);
/* Work that waits for its place still does. */
int32_t memspan_event_destroy(memspan_event_t event);
/* The event is behind what was given to the stream before, and no longer where it was. */
int32_t memspan_event_record(memspan_event_t event, memspan_stream_t stream);
/* Later work of the stream runs after the event's current place. */
int32_t memspan_stream_wait_event(memspan_stream_t stream, memspan_event_t event);
/* 0: its place is reached; MEMSPAN_STREAM_BUSY: not yet; less than 0: a bad handle. */
int32_t memspan_event_query(memspan_event_t event);
/* Until its place is reached, as memspan_stream_synchronize(). */
int32_t memspan_event_synchronize(memspan_event_t event, uint32_t timeout_ms);

#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_STREAM_H */
