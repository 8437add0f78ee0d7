/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting for the members of a Big Memory pool (smem/host/smem_bm.h). memspan's own. C99 or C++11.
 *
 *   smem_bm_join(pool, 0, NULL);
 *   memspan_pool_wait_members(pool, 2, 30000);   from now on copies reach both members
 *
 * Thread-safe. Functions return SMEM_OK or a code of smem/host/smem.h, and memspan_last_error()
 * explains it in a sentence. A time-out is not logged, so that a program may wait again.
 *
 * timeout_ms is the limit of the whole call in milliseconds: 0 looks once, UINT32_MAX is no limit.
 * A wait also ends when the store ends (SMEM_NOT_CONNECTED), when the thread is interrupted
 * (memspan/memspan.h; SMEM_ERROR), and when this process leaves or destroys the pool
 * (SMEM_NOT_STARTED, as for a process that has not joined).
 */
#ifndef MEMSPAN_POOL_H
#define MEMSPAN_POOL_H

#include <smem/host/smem_bm.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Waits until `count` members, this process included, are in the pool at the same time and copies
 * reach their memory. SMEM_TIMEOUT names the ranks that are in the pool. SMEM_NOT_CONNECTED names a
 * rank that left the pool or died during the call. SMEM_INVALID_PARAM if the pool has fewer ranks
 * than `count`, and for 0. */
int32_t memspan_pool_wait_members(smem_bm_t pool, uint32_t count, uint32_t timeout_ms);

/* Waits until `rank` is in the pool and copies reach its memory. SMEM_TIMEOUT if it does not join
 * in time, SMEM_NOT_CONNECTED if it joined and left or died during the call. */
int32_t memspan_pool_wait_rank(smem_bm_t pool, uint32_t rank, uint32_t timeout_ms);

#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_POOL_H */
