/* SPDX-License-Identifier: Apache-2.0
 *
 * CANN SHMEM: types and numbers that host and device code share, with the values and layouts of
 * version 1.5. Constants and types of the chip (buffers, cores, pools for synchronization) exist so
 * that sources compile; memspan uses none of them.
 */
#ifndef MEMSPAN_ACLSHMEM_COMMON_TYPES_H
#define MEMSPAN_ACLSHMEM_COMMON_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../host_device/shmem_common_macros.h"

/* Sizes. */
#define ALIGN_TO(size, page) (((size) + (page)-1) / (page) * (page))
#define ALIGH_TO ALIGN_TO
#define ALIGN_UP(val, al) (((val) + ((al)-1)) & ~((al)-1))

/* Limits of a job. */
#define ACLSHMEM_MAX_PES 16384
#define ACLSHMEM_MAX_TEAMS 2048
#define ACLSHMEM_MAX_LOCAL_SIZE (40ULL << 30)
#define ACLSHMEM_PAGE_SIZE (2 << 20)
#define ACLSHMEM_HEAP_ALIGNMENT_SIZE (1 << 30)

/* Limits of the chip. */
#define ACLSHMEM_MAX_AIV_PER_NPU 48
#define ACLSHMEM_LOG_MAX_AIV_PER_NPU 6
#define ACLSHMEM_BARRIER_TG_DISSEM_KVAL 8
#define L2_CACHELINE_SIZE 512
#define SCALAR_DATA_CACHELINE_SIZE 64
#define ACLSHMEM_SDMA_FLAG_LENGTH 64
#define ACLSHMEM_STARS_NOTIFY_ADDR_OFFSET (14 << 10)
#define ACLSHMEM_RDMA_MTE_STAGING_UB_SIZE 128
#define ACLSHMEM_UDMA_MTE_STAGING_UB_SIZE 128

/* Memory for synchronization. */
#define ACLSHMEM_SYNCBIT_SIZE 64
#define ACLSHMEMI_SYNCBIT_SIZE ACLSHMEM_SYNCBIT_SIZE
#define ACLSHMEM_SIGNAL_SIZE 8
#define SYNC_LOG_MAX_PES 5
#define SYNC_ARRAY_SIZE (ACLSHMEM_SYNCBIT_SIZE * SYNC_LOG_MAX_PES * ACLSHMEM_BARRIER_TG_DISSEM_KVAL)
#define SYNC_POOL_SIZE (SYNC_ARRAY_SIZE * ACLSHMEM_MAX_TEAMS)
#define SYNC_COUNTER_SIZE ACLSHMEM_SYNCBIT_SIZE
#define SYNC_COUNTERS_SIZE (SYNC_COUNTER_SIZE * ACLSHMEM_MAX_TEAMS)
#define ACLSHMEM_CORE_SYNC_POOL_SIZE \
  (ACLSHMEM_MAX_AIV_PER_NPU * ACLSHMEM_LOG_MAX_AIV_PER_NPU * ACLSHMEM_SYNCBIT_SIZE)
#define ACLSHMEM_CORE_SYNC_COUNTER_SIZE ACLSHMEM_SYNCBIT_SIZE
#define ACLSHMEM_EXTRA_SIZE_UNALIGNED SYNC_POOL_SIZE
#define ACLSHMEM_EXTRA_SIZE_UNALIGHED ACLSHMEM_EXTRA_SIZE_UNALIGNED
#define ACLSHMEM_EXTRA_SIZE (6 << 20)

/* Limits of cycle counts. */
#define ACLSHMEM_CYCLE_PROF_FRAME_CNT 1024
#define ACLSHMEM_CYCLE_PROF_MAX_BLOCK 64

#ifdef __cplusplus
#define MEMSPAN_ENUM_OF(type) : type
#else
#define MEMSPAN_ENUM_OF(type)
#endif

typedef enum MEMSPAN_ENUM_OF(int) {
  ACLSHMEM_TEAM_INVALID = -1,
  ACLSHMEM_TEAM_WORLD = 0
} aclshmem_team_index_t;

/* Engines that move data; a set of bits. */
typedef enum {
  ACLSHMEM_DATA_OP_MTE = 1,
  ACLSHMEM_DATA_OP_SDMA = 2,
  ACLSHMEM_DATA_OP_ROCE = 4,
  ACLSHMEM_DATA_OP_UDMA = 8,
  ACLSHMEM_DATA_OP_MAX = ACLSHMEM_DATA_OP_UDMA
} data_op_engine_type_t;

/* Which of the two heaps. */
typedef enum { HOST_SIDE = 0, DEVICE_SIDE = 1 } aclshmem_mem_type_t;

typedef enum { ACLSHMEM_SIGNAL_SET = 0, ACLSHMEM_SIGNAL_ADD = 1 } aclshmem_signal_op_type_t;

typedef enum {
  ACLSHMEM_CMP_EQ = 0,
  ACLSHMEM_CMP_NE = 1,
  ACLSHMEM_CMP_GT = 2,
  ACLSHMEM_CMP_GE = 3,
  ACLSHMEM_CMP_LT = 4,
  ACLSHMEM_CMP_LE = 5
} aclshmem_cmp_op_type_t;

typedef int aclshmem_team_t;
typedef uint64_t aclshmemx_team_uniqueid_t;
typedef int32_t aclshmemx_sync_bit[ACLSHMEM_SYNCBIT_SIZE / sizeof(int32_t)];
#define aclshmemi_sync_bit aclshmemx_sync_bit

typedef struct {
  aclshmem_team_t team_id;
} aclshmem_handle_t;

#define TEAM_CONFIG_PADDING 48
typedef struct {
  int32_t version;
  int32_t num_contexts;
  aclshmemx_team_uniqueid_t uniqueid;
  char padding[TEAM_CONFIG_PADDING];
} aclshmem_team_config_t;

typedef struct {
  int mype;
  int start;
  int stride;
  int size;
  int team_idx;
  aclshmem_team_config_t config;
  int32_t pe_mapping[2 * ACLSHMEM_MAX_PES];
} aclshmemx_team_t;

/* Scratch of an engine on the chip. */
typedef struct {
  int64_t aclshmem_ub;
  uint32_t ub_size;
  uint32_t sync_id;
} aclshmem_ub_config_t;
typedef aclshmem_ub_config_t aclshmem_mte_config_t;
typedef aclshmem_ub_config_t aclshmem_sdma_config_t;
typedef aclshmem_ub_config_t aclshmem_rdma_config_t;
typedef aclshmem_ub_config_t aclshmem_udma_config_t;

typedef struct {
  int64_t ccount[ACLSHMEM_CYCLE_PROF_FRAME_CNT];
  int64_t cycles[ACLSHMEM_CYCLE_PROF_FRAME_CNT];
} aclshmem_prof_block_t;

typedef struct {
  int32_t pe_id;
  aclshmem_prof_block_t block_prof[ACLSHMEM_CYCLE_PROF_MAX_BLOCK];
} aclshmem_prof_pe_t;

/* The data about the job that the originals pass to a kernel. */
typedef struct {
  int version;
  int mype;
  int npes;
  void* heap_base;
  void* host_heap_base;
  void** p2p_device_heap_base;
  void** rdma_device_heap_base;
  void** sdma_device_heap_base;
  void** p2p_host_heap_base;
  void** rdma_host_heap_base;
  void** sdma_host_heap_base;
  uint8_t topo_list[ACLSHMEM_MAX_PES];
  size_t heap_size;
  aclshmemx_team_t* team_pools[ACLSHMEM_MAX_TEAMS];
  uint64_t sync_pool;
  uint64_t sync_counter;
  uint64_t core_sync_pool;
  uint64_t core_sync_counter;
  bool is_aclshmem_initialized;
  bool is_aclshmem_created;
  aclshmem_mte_config_t mte_config;
  aclshmem_sdma_config_t sdma_config;
  aclshmem_rdma_config_t rdma_config;
  aclshmem_udma_config_t udma_config;
  uint64_t qp_info;
  uint64_t sdma_workspace_addr;
  aclshmem_prof_pe_t* profs;
  uint64_t signal_addr;
} aclshmem_device_host_state_t;

typedef struct {
  void* default_stream;
  int8_t default_event_id;
  uint32_t default_block_num;
  void* notify_arr[ACLSHMEM_MAX_AIV_PER_NPU];
} aclshmem_host_state_t;

/* One of the jobs that a process is in. */
typedef struct {
  uint64_t id;
  void* instance;
} aclshmem_instance_ctx;

#endif
