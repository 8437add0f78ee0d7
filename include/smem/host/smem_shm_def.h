/* SPDX-License-Identifier: Apache-2.0
 *
 * Share Memory: types of symmetric spaces that a group of processes makes together. C99 or C++11.
 * Names, values and layouts are MemFabric's.
 */
#ifndef MEMSPAN_SMEM_SHM_DEF_H
#define MEMSPAN_SMEM_SHM_DEF_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A space, as this process sees it; NULL is invalid. */
typedef void* smem_shm_t;

#define SMEM_SHM_TIMEOUT_MAX UINT32_MAX /* seconds */
#define SMEM_SHM_ATOMIC_NUM_LIMIT 1024U

/* Ways to move data, as preferences; bits that may be combined. */
typedef enum {
  SMEMS_DATA_OP_MTE = 1U << 0,
  SMEMS_DATA_OP_SDMA = 1U << 1,
  SMEMS_DATA_OP_RDMA = 1U << 2
} smem_shm_data_op_type;

/* Time-outs are in seconds, 1 and more. */
typedef struct {
  uint32_t shmInitTimeout;
  uint32_t shmCreateTimeout;
  uint32_t controlOperationTimeout;
  bool startConfigStoreServer; /* rank 0 hosts the store */
  uint32_t flags;
} smem_shm_config_t;

#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_SMEM_SHM_DEF_H */
