/* SPDX-License-Identifier: Apache-2.0
 *
 * Share Memory: symmetric spaces that a group of processes makes together, with collectives over
 * the store. C99 or C++11. Names, arguments and values are MemFabric's.
 *
 *   gva | rank 0: symmetricSize bytes | rank 1 | ...     the same addresses in every process
 *
 * All of it may be read and written directly by members on the same host. Thread-safe, but that
 * members call the collectives of one object (or of one key) in the same order. Functions that
 * return a code return SMEM_OK or what is wrong, and smem_get_last_err_msg() says it in a sentence.
 * Every call that waits ends by the time-outs of the configuration, and at once when a member is
 * gone. A child of fork() has no spaces.
 */
#ifndef MEMSPAN_SMEM_SHM_H
#define MEMSPAN_SMEM_SHM_H

#include "smem.h"
#include "smem_shm_def.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 120 s for each time-out; rank 0 hosts the store. */
int32_t smem_shm_config_init(smem_shm_config_t* config);
/* Connects to the store (rank 0 hosts it if the configuration allows that) as rank rankId of
 * worldSize, 1 to SMEM_WORLD_SIZE_MAX. Does not wait for others. Called again it is SMEM_OK. */
int32_t smem_shm_init(const char* configStoreIpPort, uint32_t worldSize, uint32_t rankId,
                      uint16_t deviceId, smem_shm_config_t* config);
/* Destroys what is left. */
void smem_shm_uninit(uint32_t flags);
/* Bits of smem_shm_data_op_type; also before smem_shm_init(). */
uint32_t smem_shm_query_support_data_operation(void);

/* Makes space `id` (0 to 63) among rankSize processes that all call this with the same rankSize and
 * symmetricSize (0 to 64 GiB); rankId is this one's number among them. Waits for all, up to
 * shmCreateTimeout. *gva becomes the beginning of rank 0's part. NULL with the reason kept; the id
 * is free again after that. */
smem_shm_t smem_shm_create(uint32_t id, uint32_t rankSize, uint32_t rankId, uint64_t symmetricSize,
                           smem_shm_data_op_type dataOpType, uint32_t flags, void** gva);
/* Local: others keep what they have mapped, and their collectives fail. */
int32_t smem_shm_destroy(smem_shm_t handle, uint32_t flags);

/* Keeps 1 to 65536 bytes for kernels that run with this object; replaces those before. */
int32_t smem_shm_set_extra_context(smem_shm_t handle, const void* context, uint32_t size);
/* memspan's own: what was set. *size becomes how many bytes there are, 0 when none; as many of them
 * as fit into `capacity` bytes are copied to `context`, which may be NULL with a capacity of 0. */
int32_t smem_shm_get_extra_context(smem_shm_t handle, void* context, uint32_t capacity,
                                   uint32_t* size);
/* UINT32_MAX for a bad handle. */
uint32_t smem_shm_get_global_rank(smem_shm_t handle);
uint32_t smem_shm_get_global_rank_size(smem_shm_t handle);

/* Meetings of all ranks, up to controlOperationTimeout: SMEM_TIMEOUT names the missing ranks. One
 * that failed counts, so that the next one works. The allgather takes 1 to 65536 bytes from each
 * rank, the same number, at most 8 MiB together; recvSize is sendSize x ranks. */
int32_t smem_shm_control_barrier(smem_shm_t handle);
int32_t smem_shm_control_allgather(smem_shm_t handle, const char* sendBuf, uint32_t sendSize,
                                   char* recvBuf, uint32_t recvSize);
/* The same among rankSize of the ranks that agree on a key (1 to 63 characters) and number
 * themselves from 0. A key may be used again, also by other processes when the former are done. */
int32_t smem_shm_subgroup_barrier(smem_shm_t handle, const char* key, uint32_t rankSize,
                                  uint32_t rankId);
int32_t smem_shm_subgroup_allgather(smem_shm_t handle, const char* key, uint32_t rankSize,
                                    uint32_t rankId, const char* sendBuf, uint32_t sendSize,
                                    char* recvBuf, uint32_t recvSize);

/* *reachInfo becomes the bits of smem_shm_data_op_type that lead to the rank; 0: none does. */
int32_t smem_shm_topology_can_reach(smem_shm_t handle, uint32_t remoteRank, uint32_t* reachInfo);

/* Numbers that no two processes of the object have at once: the lowest that is free and below
 * `limit` (1 to SMEM_SHM_ATOMIC_NUM_LIMIT), SMEM_NO_RESOURCES if none is free. They go back with
 * the release (SMEM_NOT_EXIST when this process does not have it), the object or the process. */
int32_t smem_shm_atomic_alloc_value(smem_shm_t handle, uint32_t limit, uint32_t* retVal);
int32_t smem_shm_atomic_release_value(smem_shm_t handle, int32_t value);

/* `exit` is called (once, on a thread of the library) with the status of the first global exit of
 * the object, in every process that registered, also in the one that asked; the process continues.
 * A second registration is SMEM_REPEAT_INVOKE. */
int32_t smem_shm_register_exit(smem_shm_t handle, void (*exit)(int));
void smem_shm_global_exit(smem_shm_t handle, int status);

#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_SMEM_SHM_H */
