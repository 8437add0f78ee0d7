/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives and messages between the processes of a group, for ordinary memory: what PyTorch's
 * process groups and runtimes with their own launcher need. No job has to be started, a process can
 * be in many groups, and the processes that call memspan_group_create() together are the members.
 * C99 or C++11.
 *
 * Members on one host share memory; those on several (MEMSPAN_HOST_ID splits a host into simulated
 * ones) reach each other by messages. Results have the same bits either way.
 *
 * Members are numbered 0 to size - 1. Functions return SMEM_OK or a code of smem/host/smem.h, and
 * memspan_last_error() says why in a sentence. No call waits longer than the group's time-out; one
 * that waits for a member which has died or left ends with SMEM_NOT_CONNECTED within milliseconds,
 * naming it. After either the members are out of step, and every later collective fails the same
 * way. A member may leave when its last call is over: what others need of those calls stays with
 * them.
 */
#ifndef MEMSPAN_GROUP_H
#define MEMSPAN_GROUP_H

#include <smem/host/smem.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct memspan_group* memspan_group_t;

#define MEMSPAN_GROUP_MEMBERS_MAX 1024

/* Gives every member's `bytes` bytes to all, in the order of members: `all` has room for bytes *
 * size. 0, or anything else when that failed. memspan_group_create() calls it on the caller's
 * thread some times, the same on all members. */
typedef int (*memspan_group_exchange_t)(void* user, const void* mine, size_t bytes, void* all);

/* Collective. `exchange` is used during the call only. `timeout_ms`, not 0, bounds this call and
 * each later one, until memspan_group_set_timeout(). */
int32_t memspan_group_create(int rank, int size, memspan_group_exchange_t exchange, void* user,
                             uint32_t timeout_ms, memspan_group_t* group);
/* Leaves the group; not collective. Calls that are in it end with a failure, and so do those of
 * other members that wait for this one. Destroying it leaves it, and so does the end of the process
 * by exit() or by returning from main(). */
int32_t memspan_group_leave(memspan_group_t group);
/* Not collective. No call is in the group any more, its requests are gone, memory that was mapped
 * through it is unmapped. */
int32_t memspan_group_destroy(memspan_group_t group);
/* Not collective. The bound of calls that begin from now on in this process, not 0. */
int32_t memspan_group_set_timeout(memspan_group_t group, uint32_t timeout_ms);
int32_t memspan_group_rank(memspan_group_t group);
int32_t memspan_group_size(memspan_group_t group);

/* ---- collectives --------------------------------------------------------------------------------
 * Blocking. All members call the same in the same order, one thread at a time. If they give
 * different sizes, types, operations or roots, all get SMEM_INVALID_PARAM before anything moves.
 * The root of a small broadcast waits for no member: if it differs from all others, a later call
 * returns the error, and the group has no more collectives after that. Sizes may be 0. `result` may
 * be `values`; otherwise what is written and what is read are apart.
 */

/* C programs may give any number, and C++ shall know no less. */
#ifdef __cplusplus
#define MEMSPAN_ANY_NUMBER : int32_t
#else
#define MEMSPAN_ANY_NUMBER
#endif

typedef enum MEMSPAN_ANY_NUMBER {
  MEMSPAN_TYPE_INT8 = 0,
  MEMSPAN_TYPE_UINT8 = 1,
  MEMSPAN_TYPE_INT16 = 2,
  MEMSPAN_TYPE_UINT16 = 3,
  MEMSPAN_TYPE_INT32 = 4,
  MEMSPAN_TYPE_UINT32 = 5,
  MEMSPAN_TYPE_INT64 = 6,
  MEMSPAN_TYPE_UINT64 = 7,
  MEMSPAN_TYPE_FLOAT16 = 8,  /* IEEE 754 binary16 */
  MEMSPAN_TYPE_BFLOAT16 = 9, /* the upper half of a float */
  MEMSPAN_TYPE_FLOAT32 = 10,
  MEMSPAN_TYPE_FLOAT64 = 11,
  MEMSPAN_TYPE_COMPLEX64 = 12, /* two floats */
  MEMSPAN_TYPE_COMPLEX128 = 13,
  MEMSPAN_TYPE_FLOAT8_E4M3FN = 14, /* sign, 4 bits of exponent, 3 of mantissa: up to 448 or NaN */
  MEMSPAN_TYPE_FLOAT8_E5M2 = 15    /* the upper half of a float16 */
} memspan_type_t;

/* Integers wrap. Floating-point types of 16 and 8 bits are combined as floats and rounded once, to
 * the nearest, ties to even; what is too big becomes infinity, and 448 in FLOAT8_E4M3FN, which has
 * none. Members are combined in their order, so that all get the same bits, whatever the
 * size. */
typedef enum MEMSPAN_ANY_NUMBER {
  MEMSPAN_OP_SUM = 0,
  MEMSPAN_OP_PRODUCT = 1,
  MEMSPAN_OP_MIN = 2, /* not of complex numbers; of no NaN */
  MEMSPAN_OP_MAX = 3,
  MEMSPAN_OP_AND = 4, /* bits; integers only */
  MEMSPAN_OP_OR = 5,
  MEMSPAN_OP_XOR = 6,
  MEMSPAN_OP_AVERAGE = 7 /* the sum divided by the size; not of integers */
} memspan_op_t;

/* For runtimes that may do a collective now or on a thread of their own. A member that calls
 * memspan_group_arrive() before each of its collectives, as all then do, can ask at most so many
 * microseconds long whether all have arrived at the one before it: SMEM_OK: all have arrived, and
 * the next calls wait for no late member; SMEM_TIMEOUT, with no text: not yet.
 * memspan_group_arrive() waits, for the group's time-out at most, until all have entered the last
 * collective, which a broadcast's root may have left before them; it fails as that collective
 * would. */
int32_t memspan_group_arrive(memspan_group_t group);
int32_t memspan_group_wait_for_arrivals(memspan_group_t group, uint32_t patience_us);

int32_t memspan_group_barrier(memspan_group_t group);
/* `root`'s bytes to all. The root of a small one may return before the others have come. */
int32_t memspan_group_broadcast(memspan_group_t group, void* values, size_t bytes, int root);
int32_t memspan_group_all_reduce(memspan_group_t group, void* result, const void* values,
                                 size_t count, memspan_type_t type, memspan_op_t op);
/* `result` is written at `root` only, and may be NULL elsewhere. */
int32_t memspan_group_reduce(memspan_group_t group, void* result, const void* values, size_t count,
                             memspan_type_t type, memspan_op_t op, int root);
/* values[m] has this member's `count` elements for member m, `result` their combination here. */
int32_t memspan_group_reduce_scatter(memspan_group_t group, void* result,
                                     const void* const values[], size_t count, memspan_type_t type,
                                     memspan_op_t op);
/* results[m] gets member m's `bytes` bytes; results[rank] may be `values`. */
int32_t memspan_group_all_gather(memspan_group_t group, void* const results[], const void* values,
                                 size_t bytes);
/* The same at `root` only; `results` may be NULL elsewhere. */
int32_t memspan_group_gather(memspan_group_t group, void* const results[], const void* values,
                             size_t bytes, int root);
/* values[m] of `root` to member m; `values` may be NULL elsewhere. */
int32_t memspan_group_scatter(memspan_group_t group, void* result, const void* const values[],
                              size_t bytes, int root);
/* value_bytes[m] bytes at values[m] to member m, result_bytes[m] bytes at results[m] from it; what
 * two members say of each other is the same, or SMEM_INVALID_PARAM on all members. */
int32_t memspan_group_all_to_all(memspan_group_t group, void* const results[],
                                 const size_t result_bytes[], const void* const values[],
                                 const size_t value_bytes[]);

/* The reduction itself, of memory of this process: combines `arrays` arrays of `count` elements in
 * their order, with the bits that memspan_group_all_reduce() gives. `result` may be one of them,
 * and overlaps none otherwise. AVERAGE divides by `arrays`. Not collective, thread-safe. */
int32_t memspan_reduce_local(void* result, const void* const values[], int arrays, size_t count,
                             memspan_type_t type, memspan_op_t op);

/* ---- messages -----------------------------------------------------------------------------------
 * Thread-safe, also beside a collective. A message matches the first receive for its sender (or for
 * any sender) and tag, in the order of sending and of posting. If the sizes differ, the receive
 * fails with SMEM_INVALID_PARAM and the message is lost. Data move while both ends are in one of
 * these calls.
 */
typedef struct memspan_group_request* memspan_group_request_t;

#define MEMSPAN_GROUP_ANYBODY (-1)
/* The result of memspan_group_test() that is neither SMEM_OK nor a failure. */
#define MEMSPAN_GROUP_PENDING 1

/* The memory stays as it is until the request is over. */
int32_t memspan_group_send(memspan_group_t group, int member, int64_t tag, const void* values,
                           size_t bytes, memspan_group_request_t* request);
int32_t memspan_group_receive(memspan_group_t group, int member, int64_t tag, void* result,
                              size_t bytes, memspan_group_request_t* request);
/* Moves what can be moved, of all requests. */
int32_t memspan_group_test(memspan_group_request_t request);
/* Until it is over; at most so many milliseconds, or the group's time-out for 0: SMEM_TIMEOUT,
 * after which it is pending as before. */
int32_t memspan_group_wait(memspan_group_request_t request, uint32_t timeout_ms);
/* The sender of the received message; -1 before it is received. */
int32_t memspan_group_sender(memspan_group_request_t request);
/* Forgets a request, which does not use its memory any more: a receive that is pending is taken
 * back, what is left of a send that has begun is copied. */
int32_t memspan_group_request_free(memspan_group_request_t request);

/* ---- memory of all members ----------------------------------------------------------------------
 * For those who make symmetric memory of their own. Thread-safe but for what is collective.
 */

/* Memory of zeros that can be mapped by others, at whole pages; NULL if memory is short, with a
 * text. Not collective. */
void* memspan_shareable_create(size_t bytes);
/* Mappings of other processes stay valid. SMEM_INVALID_PARAM if it is not such memory. */
int32_t memspan_shareable_destroy(void* memory);
/* Collective. `mine` is an address inside such memory, the same offset on all members and the same
 * size of the whole; mapped[m] gets where member m's is in this process, mapped[rank] is `mine`.
 * SMEM_ERROR, naming both hosts, where not all members are on one host. */
int32_t memspan_group_map(memspan_group_t group, void* mine, void* mapped[]);
/* Not collective, also after memspan_group_leave(); `mapped` as it was given. The members' own
 * memory stays. */
int32_t memspan_group_unmap(memspan_group_t group, void* const mapped[]);
/* Waits until the word, which is in such memory, has the value `expected` and makes it `value`, in
 * one step; what members wrote before they made it `expected` is seen then. `member` may wait for
 * the new value, and its death ends the wait. At most so many milliseconds, or the group's time-out
 * for 0. */
int32_t memspan_group_swap_word(memspan_group_t group, uint32_t* word, uint32_t expected,
                                uint32_t value, int member, uint32_t timeout_ms);

#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_GROUP_H */
