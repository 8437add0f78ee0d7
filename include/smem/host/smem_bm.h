/* SPDX-License-Identifier: Apache-2.0
 *
 * Big Memory: pools of memory that processes join and leave, with the same addresses in all of
 * them. C99 or C++11. Names, arguments and values are MemFabric's.
 *
 *   host space    | window of rank 0 | window of rank 1 | ...    DRAM
 *   device space  | window of rank 0 | window of rank 1 | ...    device memory: DRAM, or a GPU's
 *
 * Rank r's window begins at the space's base + r x maxDramSize (or maxHbmSize, each rounded up to
 * 2 MiB); what r gave is the beginning of it. An address in a space is a plain number that means
 * the same byte in every process. The windows of members on this host may be read and written
 * directly while both are joined, but not a GPU's; every member's may be copied to and from.
 *
 * Thread-safe, but for config_init. Functions that return a code return SMEM_OK or what is wrong,
 * and smem_get_last_err_msg() says it in a sentence. Every call that waits ends by the time-outs of
 * the configuration; none waits for a member that is stuck. A child of fork() has no pools.
 */
#ifndef MEMSPAN_SMEM_BM_H
#define MEMSPAN_SMEM_BM_H

#include "smem.h"
#include "smem_bm_def.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 120 s for each time-out, the store hosted here when it can be, ranks by arrival. */
int32_t smem_bm_config_init(smem_bm_config_t* config);

/* Connects to the store at storeURL (see smem_create_config_store), hosting it if the configuration
 * allows that and no store runs, and takes a rank below worldSize (1 to SMEM_WORLD_SIZE_MAX):
 * rankId, or the lowest that is free. Does not wait for other members. deviceId: has no effect. The
 * environment says whether device memory is DRAM or a GPU's, and which GPU's (docs/cuda.md). Called
 * again it is SMEM_OK and changes nothing. */
int32_t smem_bm_init(const char* storeURL, uint32_t worldSize, uint16_t deviceId,
                     const smem_bm_config_t* config);
/* Leaves and destroys what is left, and gives the rank back. When nothing else of MemFabric is
 * initialized here, the stores that this process hosts end: the others lose them. */
void smem_bm_uninit(uint32_t flags);
/* UINT32_MAX when not initialized. */
uint32_t smem_bm_get_rank_id(void);

/* Makes this process's part of pool `id`; all members give the same largest sizes (create: the
 * local ones are the largest) and find the same addresses. Local: it waits for no other process,
 * and the memory is allocated (zeros) when it returns. NULL with the reason kept:
 * SMEM_INVALID_PARAM for sizes and flags, SMEM_DUPLICATED when this process has the pool,
 * SMEM_MALLOC_FAILED when the host has too little memory, SMEM_RES_IN_USE when something else is
 * mapped at the pool's addresses in this process. The id is free again after a failure. memberSize
 * is not used. */
smem_bm_t smem_bm_create(uint32_t id, uint32_t memberSize, smem_bm_data_op_type dataOpType,
                         uint64_t localDRAMSize, uint64_t localHBMSize, uint32_t flags);
smem_bm_t smem_bm_create2(uint32_t id, const smem_bm_create_option_t* option);
/* Leaves when joined. Other threads' calls with the handle end first. */
void smem_bm_destroy(smem_bm_t handle);

/* Shows this process's part to the others and maps those of members on this host. When it returns,
 * those members have also mapped this one's (except members that are stuck). Members may come and
 * go at any time and in any order; one that is joined joins again with SMEM_OK. The call does not
 * wait for members that have not joined: memspan/pool.h does. `flags` is for later.
 * *localGvaAddress (may be NULL) becomes the beginning of this rank's window of host memory, or of
 * device memory in a pool without any. C++ may leave it out. A program that was built against a
 * library with three arguments in the symbol itself has to be compiled again. */
#ifdef __cplusplus
int32_t smem_bm_join(smem_bm_t handle, uint32_t flags);
#else
int32_t smem_bm_join(smem_bm_t handle, uint32_t flags,
                     void** localGvaAddress) __asm__("smem_bm_join_at");
#endif
/* When it returns no other process maps its memory (except members that are stuck, or copy longer
 * than a second); this process may use it until smem_bm_destroy(). The process may join again.
 * SMEM_NOT_STARTED when not joined. */
int32_t smem_bm_leave(smem_bm_t handle, uint32_t flags);

/* Bytes that this process gave (device or host, LOCAL_ or not); 0 for a bad handle or type. */
uint64_t smem_bm_get_local_mem_size_by_mem_type(smem_bm_t handle, smem_bm_mem_type memType);
/* The address of a rank's window in SMEM_MEM_TYPE_DEVICE or _HOST; NULL when the pool has no such
 * space or no such rank. */
void* smem_bm_ptr_by_mem_type(smem_bm_t handle, smem_bm_mem_type memType, uint16_t peerRankId);
/* The rank whose window has the address; UINT32_MAX: in none. */
uint32_t smem_bm_get_rank_id_by_gva(smem_bm_t handle, void* gva);

/* Copies. `t` says what each end is: G an address in one of the spaces, L and H memory of this
 * process, AUTO whatever the address is. An end in a space must be completely inside the memory
 * that its rank gave (SMEM_INVALID_PARAM); its rank must be joined (SMEM_NOT_CONNECTED, at once;
 * SMEM_TIMEOUT when it does not hand its memory over). Both ends may be other ranks'. Ends do not
 * overlap. Any size but 0, any alignment. When it returns, the bytes are at their destination, for
 * every process. ASYNC_COPY_FLAG: only begun; both ends stay as they are until smem_bm_wait().
 * If this process's lease at the store ended, another process may have its rank: copies with other
 * ranks then fail with SMEM_NOT_CONNECTED. Call smem_bm_uninit() and smem_bm_init() to join again.
 * Loads and stores at the pool's addresses are not checked, so stop using them. */
int32_t smem_bm_copy(smem_bm_t handle, smem_copy_params* params, smem_bm_copy_type t,
                     uint32_t flags);
/* Several, of any sizes and ranks, in no order. The arrays are free when it returns. On failure the
 * text names the element; others may have been copied. */
int32_t smem_bm_copy_batch(smem_bm_t handle, smem_batch_copy_params* params, smem_bm_copy_type t,
                           uint32_t flags);
/* The same, but every element that can be copied is, and results->results[i] (batchSize of them)
 * is the code of element i. SMEM_PARTIAL_FAILED when some failed. The elements of a rank that does
 * not answer take a part of controlOperationTimeout. Not with ASYNC_COPY_FLAG. */
int32_t smem_bm_copy_batch_partial_succeed(smem_bm_t handle, smem_batch_copy_params* params,
                                           smem_bm_copy_type t, uint32_t flags,
                                           smem_batch_copy_result* results);
/* Until all that this thread began with ASYNC_COPY_FLAG is copied; the first failure among them.
 * SMEM_OK if there were no copies. */
int32_t smem_bm_wait(smem_bm_t handle);

/* Says that copies with [addr, addr + size) will come, so that networks can prepare it; nothing
 * needs that. Ranges may overlap; the same one again is SMEM_OK, another size at the same address
 * SMEM_RES_IN_USE. At most 1 TiB. An unknown address is SMEM_OK to unregister. */
int32_t smem_bm_register_user_mem(smem_bm_t handle, uint64_t addr, uint64_t size);
int32_t smem_bm_unregister_user_mem(smem_bm_t handle, uint64_t addr);

#ifdef __cplusplus
}
int32_t smem_bm_join(smem_bm_t handle, uint32_t flags,
                     void** localGvaAddress) __asm__("smem_bm_join_at");
#endif

#endif /* MEMSPAN_SMEM_BM_H */
