/* SPDX-License-Identifier: Apache-2.0
 *
 * Big Memory: types of pools to which each process gives a part. C99 or C++11. Names, values and
 * layouts are MemFabric's.
 */
#ifndef MEMSPAN_SMEM_BM_DEF_H
#define MEMSPAN_SMEM_BM_DEF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A pool, as this process sees it; NULL is invalid. */
typedef void* smem_bm_t;

#define SMEM_BM_TIMEOUT_MAX UINT32_MAX /* seconds */

/* Bits of the flags of creation. Seven for the NUMA node of the DRAM that is given (0x7F: the node
 * nearest to the device), which count when the bit after them is set. A system that refuses mbind,
 * as containers do, costs one warning: the DRAM comes from any node. */
#define SMEM_BM_BIND_NUMA_FLAG_INDEX 0U
#define SMEM_BM_BIND_NUMA_FLAG_LEN 7U
#define SMEM_BM_PERFORMANCE_MODE_FLAG_INDEX 7U
#define SMEM_BM_PERFORMANCE_MODE_FLAG_LEN 1U
/* The DRAM that is given is dramShmFd's, from its beginning. */
#define SMEM_BM_FLAG_CREATE_WITH_SHM (1U << 8)

#define SMEM_TLS_PATH_SIZE 256

typedef enum {
  SMEM_MEM_TYPE_LOCAL_DEVICE = 0,
  SMEM_MEM_TYPE_LOCAL_HOST = 1,
  SMEM_MEM_TYPE_DEVICE = 2, /* the pool's space of device memory, of all ranks */
  SMEM_MEM_TYPE_HOST = 3,   /* the pool's space of DRAM */
  SMEM_MEM_TYPE_BUTT = 4
} smem_bm_mem_type;

/* Ways to move data, as preferences; bits that may be combined. */
typedef enum {
  SMEMB_DATA_OP_SDMA = 1U << 0,
  SMEMB_DATA_OP_HOST_RDMA = 1U << 1,
  SMEMB_DATA_OP_HOST_TCP = 1U << 2,
  SMEMB_DATA_OP_DEVICE_RDMA = 1U << 3,
  SMEMB_DATA_OP_HOST_URMA = 1U << 4,
  SMEMB_DATA_OP_BUTT
} smem_bm_data_op_type;

/* L: this process's device memory, H: its host memory, G: one of the pool's two spaces, GH: the one
 * of DRAM. */
typedef enum {
  SMEMB_COPY_L2G = 0,
  SMEMB_COPY_G2L = 1,
  SMEMB_COPY_G2H = 2,
  SMEMB_COPY_H2G = 3,
  SMEMB_COPY_L2GH = 4,
  SMEMB_COPY_GH2L = 5,
  SMEMB_COPY_GH2H = 6,
  SMEMB_COPY_H2GH = 7,
  SMEMB_COPY_G2G = 8,
  SMEMB_COPY_AUTO = 9, /* each end by its address */
  SMEMB_COPY_BUTT
} smem_bm_copy_type;

/* Certificates by file. All zero: none are given, which does not turn TLS off. */
typedef struct {
  bool tlsEnable;
  char caPath[SMEM_TLS_PATH_SIZE];
  char crlPath[SMEM_TLS_PATH_SIZE]; /* may be empty */
  char certPath[SMEM_TLS_PATH_SIZE];
  char keyPath[SMEM_TLS_PATH_SIZE];
  char keyPassPath[SMEM_TLS_PATH_SIZE];      /* empty: the key is not encrypted */
  char packagePath[SMEM_TLS_PATH_SIZE];      /* without effect: the library has its TLS */
  char decrypterLibPath[SMEM_TLS_PATH_SIZE]; /* exports DecryptPassword; empty: as it is */
} smem_tls_config;

/* Time-outs are in seconds, 1 and more. */
typedef struct {
  uint32_t initTimeout;
  uint32_t createTimeout;
  uint32_t controlOperationTimeout;
  bool startConfigStoreServer; /* this process may host the store */
  bool startConfigStoreOnly;   /* and does nothing else */
  bool dynamicWorldSize;
  bool unifiedAddressSpace; /* true */
  bool autoRanking;         /* ranks in order of arrival; else rankId */
  uint16_t rankId;
  uint32_t flags;
  char hcomUrl[64]; /* which network interface */
  smem_tls_config hcomTlsConfig;
  smem_tls_config storeTlsConfig;
} smem_bm_config_t;

/* Sizes are in bytes, of any value; a rank's window of a space is the largest size. */
typedef struct {
  uint64_t maxDramSize;
  uint64_t maxHbmSize;
  uint64_t localDRAMSize; /* what this rank gives: up to 2 TiB, 0 too */
  uint64_t localHBMSize;  /* up to 64 GiB, 0 too */
  smem_bm_data_op_type dataOpType;
  uint32_t flags;
  char tag[32];        /* 1 to 30 of [a-zA-Z0-9_], or empty */
  char tagOpInfo[256]; /* "tagA:OP:tagB,..." */
  int dramShmFd;
} smem_bm_create_option_t;

typedef struct {
  const void* src;
  void* dest;
  size_t dataSize; /* bytes */
} smem_copy_params;

typedef struct {
  void** sources;
  void** destinations;
  const uint64_t* dataSizes; /* bytes */
  uint32_t batchSize;        /* of each array */
} smem_batch_copy_params;

typedef struct {
  int32_t* results; /* a code for each element */
  uint32_t batchSize;
} smem_batch_copy_result;

#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_SMEM_BM_DEF_H */
