/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of memspan's endpoints (smem/host/smem_trans.h) beyond MemFabric: transfers that run
 * while the caller does something else, prepared once and posted many times; pieces by a rule; and
 * a message to the peer when its data have arrived. C99 or C++11.
 *
 *   prepare ──► [what follows the data] ──► post ──► test, wait, callback or descriptor ──► post
 * ...
 *
 * Thread-safe. Functions return SMEM_OK or a code of smem/host/smem.h, and smem_get_last_err_msg()
 * says why in a sentence; SMEM_NOT_EXIST is also returned for a bad handle of a request, and
 * SMEM_INVALID_PARAM for one of an endpoint. A child of fork() has no requests.
 */
#ifndef MEMSPAN_TRANSFER_H
#define MEMSPAN_TRANSFER_H

#include <smem/host/smem_trans.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A transfer that can be posted; NULL is invalid. Until memspan_transfer_destroy(); one whose
 * endpoint was destroyed can be asked, but not posted. */
typedef void* memspan_transfer_t;

typedef enum { MEMSPAN_TRANSFER_READ = 0, MEMSPAN_TRANSFER_WRITE = 1 } memspan_transfer_direction_t;

/* The result of memspan_transfer_test() that is neither SMEM_OK nor a failure. */
#define MEMSPAN_TRANSFER_PENDING 1
#define MEMSPAN_TRANSFER_CANCELLED 2

#define MEMSPAN_TRANSFER_MESSAGE_MAX 256
#define MEMSPAN_TRANSFER_COUNTERS 1024U
#define MEMSPAN_TRANSFER_FOREVER UINT32_MAX

/* `count` blocks of `bytes` bytes; block i begins at base + i * stride, which may be negative. */
typedef struct {
  void* base;
  int64_t stride;
  uint64_t bytes;
  uint64_t count;
} memspan_transfer_blocks_t;

/* Pages of a memory that begins at base: page n of it is at base + n * (bytes of a page). */
typedef struct {
  void* base;
  const uint32_t* pages;
} memspan_transfer_pages_t;

/* How far a posting has come. `code` is what memspan_transfer_test() says; `pieces` were moved,
 * from the first on, and where a piece failed, that is its number. */
typedef struct {
  int32_t code;
  uint64_t pieces;
} memspan_transfer_result_t;

/* Finds the peer and prepares for transfers to it, which are not slower at first then: SMEM_OK, or
 * why a transfer would fail now. At most 5 s. */
int32_t memspan_transfer_reach(smem_trans_t endpoint, const char* peer);

/* As smem_trans_malloc(), but memory of the device that this process has chosen: with
 * MEMSPAN_DEVICE=cuda that of its GPU, of zeros, in steps of 2 MiB, which peers on this host map
 * and the host cannot load or store; without it smem_trans_malloc()'s own. smem_trans_free() gives
 * it back; what transfers of this process are at stays until they are over, and what a peer has
 * mapped until that peer's next transfer to this endpoint. NULL with the reason kept. */
void* memspan_transfer_device_malloc(smem_trans_t endpoint, size_t bytes);

/* As smem_trans_register_mem(), but replaces the pages of the range by shared ones first, in place
 * and with their bytes, so that peers on this host map them and transfers are copies, as with
 * memory of smem_trans_malloc(). For private memory from malloc(), new or mmap() that may be read
 * and written; the first and the last page of the range are replaced whole. Other threads may read
 * and write it during the call. smem_trans_deregister_mem() gives the range private pages again,
 * and has to come before it is freed, resized or moved. In between, a child of fork() shares it
 * with its parent. docs/transfer.md, "Adopted memory", lists the other changes.
 *
 * The same range again is counted, also by smem_trans_register_mem(); another one that overlaps it
 * is SMEM_INVALID_PARAM, as is memory that is not private or not there. SMEM_ERROR where the system
 * does not let this process hold off its writers; SMEM_MALLOC_FAILED if memory for 64 MiB more is
 * missing. After a failure the memory is as before. */
int32_t memspan_transfer_register_adopted(smem_trans_t endpoint, void* address, size_t bytes);

/* ---- prepare ------------------------------------------------------------------------------------
 * These functions copy their arguments, access no memory and contact no process: each posting
 * checks that the peer exists and has registered the pieces. SMEM_NO_RESOURCES: too many requests.
 */

/* Pieces one by one, as smem_trans_batch_write() and _read() take them. */
int32_t memspan_transfer_prepare(smem_trans_t endpoint, memspan_transfer_direction_t direction,
                                 const char* peer, void* const local[], void* const remote[],
                                 const size_t bytes[], uint64_t count, memspan_transfer_t* request);
/* Blocks of both ends, which are as many bytes; where their sizes differ, one is a multiple of the
 * other, and a piece is one of the smaller. */
int32_t memspan_transfer_prepare_blocks(smem_trans_t endpoint,
                                        memspan_transfer_direction_t direction, const char* peer,
                                        const memspan_transfer_blocks_t* local,
                                        const memspan_transfer_blocks_t* remote,
                                        memspan_transfer_t* request);
/* Piece i is page local->pages[i] here and page remote->pages[i] there, for i < count. */
int32_t memspan_transfer_prepare_pages(smem_trans_t endpoint,
                                       memspan_transfer_direction_t direction, const char* peer,
                                       const memspan_transfer_pages_t* local,
                                       const memspan_transfer_pages_t* remote, uint64_t page_bytes,
                                       uint64_t count, memspan_transfer_t* request);
/* Cancels it. Waits for its callback, but when that calls this. */
int32_t memspan_transfer_destroy(memspan_transfer_t request);

/* ---- what follows the data ----------------------------------------------------------------------
 * Each posting does this after all its bytes have arrived, the message first. Both may be asked
 * for; they are copied. SMEM_NOT_STARTED while the request is posted.
 */

/* Puts a message of 0 to 256 bytes into the peer's mailbox, which holds some hundred; while it is
 * full the request is pending. NULL: none. */
int32_t memspan_transfer_set_message(memspan_transfer_t request, const void* message, size_t bytes);
/* Adds to one of the peer's counters, 0 to 1023; value 0: none. */
int32_t memspan_transfer_set_counter(memspan_transfer_t request, uint32_t counter, uint64_t value);

/* How many milliseconds each posting waits for pieces that a running peer has not registered yet;
 * 0: it fails at once. Without this call as smem_trans_write() does. SMEM_NOT_STARTED while the
 * request is posted. */
int32_t memspan_transfer_set_patience(memspan_transfer_t request, uint32_t timeout_ms);

/* ---- post and complete --------------------------------------------------------------------------
 * Requests of an endpoint are carried out in turn by a thread of the endpoint: they begin in the
 * order of their posting, but a small one may be over before a large one, and none is ordered
 * behind another's data. Both ends stay as they are until the request is over.
 */

/* SMEM_NOT_STARTED while it is posted. */
int32_t memspan_transfer_post(memspan_transfer_t request);
/* SMEM_OK, MEMSPAN_TRANSFER_PENDING (also before the first posting), MEMSPAN_TRANSFER_CANCELLED, or
 * why it failed. */
int32_t memspan_transfer_test(memspan_transfer_t request);
/* The same without keeping an error's text: for the number of pieces. */
int32_t memspan_transfer_result(memspan_transfer_t request, memspan_transfer_result_t* result);
/* Until it is over, at most so many milliseconds: SMEM_TIMEOUT, after which it is pending as
 * before. Else as memspan_transfer_test(). SMEM_INVALID_PARAM when it was never posted. */
int32_t memspan_transfer_wait(memspan_transfer_t request, uint32_t timeout_ms);
/* When this returns neither end is touched any more, whether it was over before or not. Up to 1 MiB
 * that is on its way to another host may still arrive there. It takes about a millisecond, and a
 * tenth of a second if the peer on another host takes nothing. It can be posted again. */
int32_t memspan_transfer_cancel(memspan_transfer_t request);

/* `over` is called on the endpoint's thread when a posting is over and was not cancelled; `code` as
 * memspan_transfer_test() says. It may post and destroy requests, also this one, but neither wait
 * for one nor destroy the endpoint. NULL: none. SMEM_NOT_STARTED while it is posted. */
typedef void (*memspan_transfer_callback_t)(memspan_transfer_t request, int32_t code, void* user);
int32_t memspan_transfer_set_callback(memspan_transfer_t request, memspan_transfer_callback_t over,
                                      void* user);
/* A descriptor for poll(), readable from when the request is over until it is posted again. It
 * belongs to the request; do not read or close it. */
int32_t memspan_transfer_event(memspan_transfer_t request, int* descriptor);

/* ---- at the peer */

typedef struct {
  char sender[64]; /* the name of its endpoint */
  uint32_t bytes;
  unsigned char message[MEMSPAN_TRANSFER_MESSAGE_MAX];
} memspan_transfer_message_t;

/* Receives the oldest pending message of the endpoint. MEMSPAN_TRANSFER_PENDING if no message
 * arrives within so many milliseconds; 0 does not wait. */
int32_t memspan_transfer_receive(smem_trans_t endpoint, memspan_transfer_message_t* message,
                                 uint32_t timeout_ms);
/* A descriptor for poll(), readable while there is a message. It belongs to the endpoint. */
int32_t memspan_transfer_messages_event(smem_trans_t endpoint, int* descriptor);

/* Counters begin with 0 and end with the endpoint; 64 bits, beyond which they begin again. */
int32_t memspan_transfer_counter(smem_trans_t endpoint, uint32_t counter, uint64_t* value);
/* Until the counter is `value` or more, at most so many milliseconds: SMEM_TIMEOUT. */
int32_t memspan_transfer_wait_counter(smem_trans_t endpoint, uint32_t counter, uint64_t value,
                                      uint32_t timeout_ms);

#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_TRANSFER_H */
