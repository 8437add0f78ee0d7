/* SPDX-License-Identifier: Apache-2.0
 *
 * CANN SHMEM: how host code starts; codes, attributes, the unique id.
 */
#ifndef MEMSPAN_ACLSHMEM_HOST_DEF_H
#define MEMSPAN_ACLSHMEM_HOST_DEF_H

#include <limits.h>

#include "../host_device/shmem_common_types.h"

#define ACLSHMEM_HOST_API __attribute__((visibility("default")))

#define ACLSHMEM_MAJOR_VERSION 1
#define ACLSHMEM_MINOR_VERSION 1
#define ACLSHMEM_VENDOR_MAJOR_VER 1
#define ACLSHMEM_VENDOR_MINOR_VER 1
#define ACLSHMEM_VENDOR_PATCH_VER 1
#define ACLSHMEM_MAX_NAME_LEN 256
#define ACLSHMEM_MAX_IP_PORT_LEN 64
#define ACLSHMEM_UNIQUE_ID_INNER_LEN 124
#define DEFAULT_TIMEOUT 120 /* seconds */

#ifndef MEMSPAN_NO_ACLSHMEM_RESULT
typedef int32_t Result;
#endif

/* The results of functions that return int. */
typedef enum MEMSPAN_ENUM_OF(int) {
  ACLSHMEM_SUCCESS = 0,
  ACLSHMEM_INVALID_PARAM = -1,
  ACLSHMEM_INVALID_VALUE = -2,
  ACLSHMEM_SMEM_ERROR = -3,
  ACLSHMEM_INNER_ERROR = -4,
  ACLSHMEM_NOT_INITED = -5,
  ACLSHMEM_BOOTSTRAP_ERROR = -6,
  ACLSHMEM_TIMEOUT_ERROR = -7,
  ACLSHMEM_MALLOC_FAILED = -8,
  ACLSHMEM_DL_FUNC_FAILED = -9,
  ACLSHMEM_INNER_TIMEOUT = -10,
  ACLSHMEM_UNDER_API_UNLOAD = -11,
  ACLSHMEM_NOT_SUPPORTED = -100
} aclshmem_error_code_t;

/* By what processes find each other. */
typedef enum {
  ACLSHMEMX_INIT_WITH_DEFAULT = 1,  /* ip_port, else a unique id */
  ACLSHMEMX_INIT_WITH_MPI = 2,      /* the MPI of the process; comm_args: MPI_Comm*, NULL: all */
  ACLSHMEMX_INIT_WITH_UNIQUEID = 8, /* the unique id */
#ifdef __cplusplus
  ACLSHMEMX_INIT_MAX = 1U << 31
#else
  ACLSHMEMX_INIT_MAX = INT_MIN /* the same bits: no more fit an enumeration of C */
#endif
} aclshmemx_bootstrap_t;

/* The results of aclshmemx_init_status(). */
typedef enum {
  ACLSHMEM_STATUS_NOT_INITIALIZED = 0,
  ACLSHMEM_STATUS_SHM_CREATED = 1,
  ACLSHMEM_STATUS_IS_INITIALIZED = 2,
  ACLSHMEM_STATUS_INVALID = INT_MAX
} aclshmemx_init_status_t;

typedef enum MEMSPAN_ENUM_OF(uint8_t) {
  ACLSHMEM_TRANSPORT_MTE = 1,
  ACLSHMEM_TRANSPORT_ROCE = 2,
  ACLSHMEM_TRANSPORT_SDMA = 4,
  ACLSHMEM_TRANSPORT_UDMA = 8
} aclshmem_transport_t;

typedef struct {
  int version;
  data_op_engine_type_t data_op_engine_type;
  uint32_t shm_init_timeout; /* all three in seconds */
  uint32_t shm_create_timeout;
  uint32_t control_operation_timeout;
  int32_t sockFd;
} aclshmem_init_optional_attr_t;

/* In C++ it has values that are good as they are: the MTE engine and time-outs of 120 s. */
typedef struct aclshmemx_init_attr_t {
  int my_pe;
  int n_pes;
  /* "tcp://127.0.0.1:8666": where PE 0 hosts the store */
  char ip_port[ACLSHMEM_MAX_IP_PORT_LEN] MEMSPAN_ACLSHMEM_DEFAULT({});
  uint64_t local_mem_size;
  aclshmem_init_optional_attr_t option_attr MEMSPAN_ACLSHMEM_DEFAULT(
      {(1 << 16) + sizeof(aclshmem_init_optional_attr_t), ACLSHMEM_DATA_OP_MTE, DEFAULT_TIMEOUT,
       DEFAULT_TIMEOUT, DEFAULT_TIMEOUT, 0});
  void* comm_args MEMSPAN_ACLSHMEM_DEFAULT(nullptr); /* an aclshmemx_uniqueid_t, or an MPI_Comm */
  uint64_t instance_id MEMSPAN_ACLSHMEM_DEFAULT(0);  /* 0 to 255: which job of the process */
} aclshmemx_init_attr_t;

typedef struct {
  int32_t version;
  int my_pe;
  int n_pes;
  char internal[ACLSHMEM_UNIQUE_ID_INNER_LEN];
} aclshmemx_uniqueid_t;
#define ACLSHMEM_UNIQUEID_VERSION ((1 << 16) + sizeof(aclshmemx_uniqueid_t))
#define ACLSHMEM_UNIQUEID_INITIALIZER  \
  {                                    \
    ACLSHMEM_UNIQUEID_VERSION, 0, 0, { \
      0                                \
    }                                  \
  }

/* Turns a password as it is stored into the one that opens the key; 0 means that it could. */
#ifdef __cplusplus
typedef int (*aclshmem_decrypt_handler)(const char* cipher, size_t cipher_len, char* plain,
                                        size_t& plain_len);
#else
typedef int (*aclshmem_decrypt_handler)(const char* cipher, size_t cipher_len, char* plain,
                                        size_t* plain_len);
#endif

/* A stream of the device: NULL is the library's own. On the host device a memspan_stream_t of
 * <memspan/stream.h>. */
#ifndef MEMSPAN_ACLRT_STREAM
#define MEMSPAN_ACLRT_STREAM
typedef void* aclrtStream;
#endif

#endif
