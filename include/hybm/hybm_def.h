/* SPDX-License-Identifier: Apache-2.0
 *
 * Types and constants of the layer below MemFabric's smem, for programs that include this header
 * beside smem's. C99 or C++11. Names and values are MemFabric's. memspan has no such layer: there
 * are no functions to it, and libmf_hybm_core.so is another name of the one library.
 */
#ifndef MEMSPAN_HYBM_HYBM_DEF_H
#define MEMSPAN_HYBM_HYBM_DEF_H

#include <stdbool.h>
#include <stdint.h>

#include "../smem/host/smem_bm_def.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HYBM_FLAG_EXPORT_ENTITY 1U
#define HYBM_FLAG_CREATE_WITH_SHM (1U << 8)
#define HYBM_FLAG_INIT_SHMEM_META (1ULL << 63)
#define HYBM_BIND_NUMA_FLAG_INDEX 0U
#define HYBM_BIND_NUMA_FLAG_LEN 7U
#define HYBM_BIND_NUMA_AUTO_AFFINITY_FLAG 0x7FU
#define HYBM_PERFORMANCE_MODE_FLAG_INDEX 7U
#define HYBM_PERFORMANCE_MODE_FLAG_LEN 1U
#define HYBM_PRE_REG_SIZE_THRES (8ULL << 20) /* bytes */
#define HYBM_TLS_PATH_SIZE 256

typedef void* hybm_entity_t;
typedef void* hybm_mem_slice_t;

typedef enum {
  HYBM_TYPE_AI_CORE_INITIATE = 0,
  HYBM_TYPE_HOST_INITIATE = 1,
  HYBM_TYPE_BUTT
} hybm_type;

/* Other bits than those of smem_bm_data_op_type. */
typedef enum {
  HYBM_DOP_TYPE_DEFAULT = 0,
  HYBM_DOP_TYPE_MTE = 1 << 0,
  HYBM_DOP_TYPE_SDMA = 1 << 1,
  HYBM_DOP_TYPE_DEVICE_RDMA = 1 << 2,
  HYBM_DOP_TYPE_HOST_RDMA = 1 << 3,
  HYBM_DOP_TYPE_HOST_TCP = 1 << 4,
  HYBM_DOP_TYPE_HOST_URMA = 1 << 5,
  HYBM_DOP_TYPE_BUTT
} hybm_data_op_type;

typedef enum {
  HYBM_MEM_TYPE_DEVICE = 1 << 0,
  HYBM_MEM_TYPE_HOST = 1 << 1,
  HYBM_MEM_TYPE_BUTT
} hybm_mem_type;

typedef enum {
  HYBM_SCENE_DEFAULT = 1 << 0,
  HYBM_SCENE_TRANS = 1 << 1,
  HYBM_SCENE_SHM = 1 << 2
} hybm_scene;

typedef enum {
  HYBM_ROLE_PEER = 0,
  HYBM_ROLE_SENDER = 1,
  HYBM_ROLE_RECEIVER = 2,
  HYBM_ROLE_BUTT
} hybm_role_type;

typedef enum {
  HYBM_LOCAL_HOST_TO_GLOBAL_HOST = 0,
  HYBM_LOCAL_HOST_TO_GLOBAL_DEVICE = 1,
  HYBM_LOCAL_DEVICE_TO_GLOBAL_HOST = 2,
  HYBM_LOCAL_DEVICE_TO_GLOBAL_DEVICE = 3,
  HYBM_GLOBAL_HOST_TO_GLOBAL_HOST = 4,
  HYBM_GLOBAL_HOST_TO_GLOBAL_DEVICE = 5,
  HYBM_GLOBAL_HOST_TO_LOCAL_HOST = 6,
  HYBM_GLOBAL_HOST_TO_LOCAL_DEVICE = 7,
  HYBM_GLOBAL_DEVICE_TO_GLOBAL_HOST = 8,
  HYBM_GLOBAL_DEVICE_TO_GLOBAL_DEVICE = 9,
  HYBM_GLOBAL_DEVICE_TO_LOCAL_HOST = 10,
  HYBM_GLOBAL_DEVICE_TO_LOCAL_DEVICE = 11,
  HYBM_DATA_COPY_DIRECTION_AUTO = 12,
  HYBM_DATA_COPY_DIRECTION_BUTT
} hybm_data_copy_direction;

typedef smem_tls_config hybm_tls_config;

typedef struct {
  uint8_t desc[512];
  uint32_t descLen;
} hybm_exchange_info;

typedef struct {
  hybm_type bmType;
  hybm_mem_type memType;
  hybm_data_op_type bmDataOpType;
  uint16_t rankCount;
  uint16_t rankId;
  uint16_t devId;
  uint64_t maxHBMSize;
  uint64_t maxDRAMSize;
  uint64_t deviceVASpace;
  uint64_t hostVASpace;
  hybm_scene scene;
  bool globalUniqueAddress;
  hybm_role_type role;
  uint32_t flags;
  char transUrl[64];
  char tag[32];
  char tagOpInfo[256];
  hybm_tls_config tlsOption;
  int dramShmFd;
} hybm_options;

typedef struct {
  void* src;
  void* dest;
  uint64_t dataSize; /* bytes */
} hybm_copy_params;

typedef struct {
  void** sources;
  void** destinations;
  const uint64_t* dataSizes; /* bytes */
  uint32_t batchSize;        /* of each array */
} hybm_batch_copy_params;

#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_HYBM_HYBM_DEF_H */
