/* SPDX-License-Identifier: Apache-2.0
 *
 * CANN SHMEM under the names that it had first (August to December 2025): a symmetric heap, teams,
 * put and get from host code, over those of version 1.5 (<aclshmem.h>). In a source that is
 * compiled with MEMSPAN_DEVICE_CODE it has the early names for kernels instead (C++17).
 *
 * The interface is that of the early CANN SHMEM headers. C99 or later, C++11 or later; link with
 * -lshmem. Names that are OpenSHMEM's too, with another meaning, are macros here for the library's
 * aclshmem_ symbols. To use both interfaces in one file include <shmem.h> first: then only the
 * names that do not collide are declared here.
 *
 * Threads: setting up, ending and what is collective is for one thread at a time; put, get and
 * queries may be called by several at once.
 *
 * Errors: functions that return int give 0 or a code below; those that return a pointer give NULL.
 * memspan_last_error() (<memspan/memspan.h>) then says why. Those that return nothing print one
 * line and end the process with code 1.
 */
#ifndef MEMSPAN_ACLSHMEM_SHMEM_API_H
#define MEMSPAN_ACLSHMEM_SHMEM_API_H

#ifdef MEMSPAN_DEVICE_CODE
#include "aclshmem/device/shmem_device_aliases.h"
#else

#define MEMSPAN_NO_ACLSHMEM_ALIASES
#include "aclshmem/shmem.h"
#undef MEMSPAN_NO_ACLSHMEM_ALIASES

/* Return codes. */
#define SHMEM_SUCCESS ACLSHMEM_SUCCESS
#define SHMEM_INVALID_PARAM ACLSHMEM_INVALID_PARAM
#define SHMEM_INVALID_VALUE ACLSHMEM_INVALID_VALUE
#define SHMEM_SMEM_ERROR ACLSHMEM_SMEM_ERROR
#define SHMEM_INNER_ERROR ACLSHMEM_INNER_ERROR
#define SHMEM_NOT_INITED ACLSHMEM_NOT_INITED
#define SHMEM_BOOTSTRAP_ERROR ACLSHMEM_BOOTSTRAP_ERROR
#define SHMEM_TIMEOUT_ERROR ACLSHMEM_TIMEOUT_ERROR
#define SHMEM_MALLOC_FAILED ACLSHMEM_MALLOC_FAILED
#define SHMEM_NOT_SUPPORTED ACLSHMEM_NOT_SUPPORTED

#define SHMEM_UNIQUEID_INTERNAL_LENGTH 60
#define SHMEM_IP_PORT_LENGTH 64

/* The results of shmem_init_status(). */
#define SHMEM_STATUS_NOT_INITIALIZED ACLSHMEM_STATUS_NOT_INITIALIZED
#define SHMEM_STATUS_SHM_CREATED ACLSHMEM_STATUS_SHM_CREATED
#define SHMEM_STATUS_IS_INITIALIZED ACLSHMEM_STATUS_IS_INITIALIZED
#define SHMEM_STATUS_INVALID ACLSHMEM_STATUS_INVALID

/* Engines that move data. */
#define SHMEM_DATA_OP_MTE ACLSHMEM_DATA_OP_MTE
#define SHMEM_DATA_OP_SDMA ACLSHMEM_DATA_OP_SDMA
#define SHMEM_DATA_OP_ROCE ACLSHMEM_DATA_OP_ROCE

typedef aclshmem_init_optional_attr_t shmem_init_optional_attr_t;

typedef struct {
  int my_rank;
  int n_ranks;
  char ip_port[SHMEM_IP_PORT_LENGTH]; /* "tcp://127.0.0.1:8666": where rank 0 hosts the store */
  uint64_t local_mem_size;
  shmem_init_optional_attr_t option_attr;
} shmem_init_attr_t;

typedef struct {
  int32_t version;
  char internal[SHMEM_UNIQUEID_INTERNAL_LENGTH];
} shmem_uniqueid_t;

typedef aclshmem_decrypt_handler shmem_decrypt_handler;

#ifdef __cplusplus
extern "C" {
#endif

/* Makes *attributes point to the library's own attribute object, filled with these values, the
 * MTE engine and time-outs of 120 s. `ip_port` may be NULL when a unique id will be used. The
 * object is the same at every call. */
int shmem_set_attr(int my_rank, int n_ranks, uint64_t local_mem_size, const char* ip_port,
                   shmem_init_attr_t** attributes);
int shmem_set_data_op_engine_type(shmem_init_attr_t* attributes, data_op_engine_type_t value);
/* All three time-outs, in seconds. */
int shmem_set_timeout(shmem_init_attr_t* attributes, uint32_t value);

/* Joins the job; collective over n_ranks processes. A process that oshrun started must pass the
 * rank and size that oshrun gave it. */
int shmem_init_attr(shmem_init_attr_t* attributes);
/* Anything that the other processes need to find this one; the process stays reachable until it
 * ends. Sent to all, it is what shmem_set_attr_uniqueid_args() takes. */
int shmem_get_uniqueid(shmem_uniqueid_t* uid);
/* Joins by a unique id that rank 0 made; `attr` comes from shmem_set_attr(). */
int shmem_set_attr_uniqueid_args(int rank_id, int nranks, const shmem_uniqueid_t* uid,
                                 shmem_init_attr_t* attr);
int shmem_init_status(void);

/* Before joining; all three copy what they are given. The store speaks TLS unless it is turned off
 * by (false, NULL, 0). Without a call it is protected by a secret: of MEMSPAN_JOB_SECRET_FILE, or
 * one that only this user's processes on this host can read. (true, tls_info, length) asks for
 * certificates instead, which both sides show: "tlsCert: FILE; tlsCaPath: FOLDER; tlsCaFile: NAME,
 * NAME; tlsPk: FILE; tlsPkPwd: FILE; tlsCrlPath: FOLDER; tlsCrlFile: NAME". An entry that is
 * unknown, empty or there twice is SHMEM_INVALID_PARAM; a file that cannot be used fails the start.
 * The key (at most 10 KiB of PEM) and its password may be given as text instead; a handler, the
 * last one given, decrypts the password. Thread-safe. */
int32_t shmem_set_conf_store_tls(bool enable, const char* tls_info, const uint32_t tls_info_len);
int32_t shmem_register_decrypt_handler(const shmem_decrypt_handler decrypt_handler);
int32_t shmem_set_config_store_tls_key(const char* tls_pk, const uint32_t tls_pk_len,
                                       const char* tls_pk_pw, const uint32_t tls_pk_pw_len,
                                       const shmem_decrypt_handler decrypt_handler);

/* The function gets every line of the log instead of stderr; NULL goes back. It must not call the
 * library. Levels: 0 debug, 1 info, 2 warn, 3 error, 4 fatal. */
int32_t shmem_set_extern_logger(void (*func)(int level, const char* msg));
int32_t shmem_set_log_level(int level);

/* Settings of Ascend hardware; accepted and without effect. */
int shmem_mte_set_ub_params(uint64_t offset, uint32_t ub_size, uint32_t event_id);
uint64_t shmemx_get_ffts_config(void);

/* Put and get of `nelems` elements; the _signal forms then set or add to a 32-bit word of the PE: a
 * PE that sees the word sees the data. */
#define MEMSPAN_EARLY_TYPED(name, type)                                                         \
  void shmem_put_##name##_mem(type* dest, type* source, size_t nelems, int pe);                 \
  void shmem_put_##name##_mem_nbi(type* dest, type* source, size_t nelems, int pe);             \
  void shmem_get_##name##_mem(type* dest, type* source, size_t nelems, int pe);                 \
  void shmem_get_##name##_mem_nbi(type* dest, type* source, size_t nelems, int pe);             \
  void shmem_put_##name##_mem_signal(type* dst, type* src, size_t elem_size, uint8_t* sig_addr, \
                                     int32_t signal, int sig_op, int pe);                       \
  void shmem_put_##name##_mem_signal_nbi(type* dst, type* src, size_t elem_size,                \
                                         uint8_t* sig_addr, int32_t signal, int sig_op, int pe);
MEMSPAN_EARLY_TYPED(float, float)
MEMSPAN_EARLY_TYPED(double, double)
MEMSPAN_EARLY_TYPED(int8, int8_t)
MEMSPAN_EARLY_TYPED(int16, int16_t)
MEMSPAN_EARLY_TYPED(int32, int32_t)
MEMSPAN_EARLY_TYPED(int64, int64_t)
MEMSPAN_EARLY_TYPED(uint8, uint8_t)
MEMSPAN_EARLY_TYPED(uint16, uint16_t)
MEMSPAN_EARLY_TYPED(uint32, uint32_t)
MEMSPAN_EARLY_TYPED(uint64, uint64_t)
MEMSPAN_EARLY_TYPED(char, char)
#undef MEMSPAN_EARLY_TYPED

#ifdef __cplusplus
}
#endif

#ifndef MEMSPAN_OPENSHMEM_SHMEM_H

/* <shmem.h> looks for this. */
#define MEMSPAN_EARLY_SHMEM_NAMES 1

typedef int shmem_team_t;
enum { SHMEM_TEAM_INVALID = -1, SHMEM_TEAM_WORLD = 0 };
enum { SHMEM_SIGNAL_SET = 0, SHMEM_SIGNAL_ADD = 1 };
enum {
  SHMEM_CMP_EQ = 0,
  SHMEM_CMP_NE = 1,
  SHMEM_CMP_GT = 2,
  SHMEM_CMP_GE = 3,
  SHMEM_CMP_LT = 4,
  SHMEM_CMP_LE = 5
};
#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 1
#define SHMEM_MAX_NAME_LEN 256

typedef struct {
  int num_contexts;
} shmem_team_config_t;

#define shmem_finalize aclshmem_finalize
#define shmem_global_exit aclshmem_global_exit
#define shmem_info_get_version aclshmem_info_get_version
#define shmem_info_get_name aclshmem_info_get_name
#define shmem_my_pe aclshmem_my_pe
#define shmem_n_pes aclshmem_n_pes
#define shmem_malloc aclshmem_malloc
#define shmem_calloc aclshmem_calloc
#define shmem_align aclshmem_align
#define shmem_free aclshmem_free
#define shmem_ptr aclshmem_ptr
#define shmem_putmem aclshmem_putmem
#define shmem_getmem aclshmem_getmem
#define shmem_putmem_nbi aclshmem_putmem_nbi
#define shmem_getmem_nbi aclshmem_getmem_nbi
#define shmem_putmem_signal aclshmemx_putmem_signal
#define shmem_putmem_signal_nbi aclshmemx_putmem_signal_nbi
#define shmem_float_p aclshmem_float_p
#define shmem_float_g aclshmem_float_g
#define shmem_double_p aclshmem_double_p
#define shmem_double_g aclshmem_double_g
#define shmem_int8_p aclshmem_int8_p
#define shmem_int8_g aclshmem_int8_g
#define shmem_int16_p aclshmem_int16_p
#define shmem_int16_g aclshmem_int16_g
#define shmem_int32_p aclshmem_int32_p
#define shmem_int32_g aclshmem_int32_g
#define shmem_int64_p aclshmem_int64_p
#define shmem_int64_g aclshmem_int64_g
#define shmem_uint8_p aclshmem_uint8_p
#define shmem_uint8_g aclshmem_uint8_g
#define shmem_uint16_p aclshmem_uint16_p
#define shmem_uint16_g aclshmem_uint16_g
#define shmem_uint32_p aclshmem_uint32_p
#define shmem_uint32_g aclshmem_uint32_g
#define shmem_uint64_p aclshmem_uint64_p
#define shmem_uint64_g aclshmem_uint64_g
#define shmem_char_p aclshmem_char_p
#define shmem_char_g aclshmem_char_g
#define shmem_barrier aclshmem_barrier
#define shmem_barrier_all aclshmem_barrier_all
#define shmem_team_my_pe aclshmem_team_my_pe
#define shmem_team_n_pes aclshmem_team_n_pes
#define shmem_team_split_strided aclshmem_team_split_strided
#define shmem_team_split_2d aclshmem_team_split_2d
#define shmem_team_translate_pe aclshmem_team_translate_pe
#define shmem_team_get_config aclshmemx_early_team_get_config
#define shmem_team_destroy aclshmem_team_destroy

#ifdef __cplusplus
extern "C" {
#endif
/* The later structure is longer. */
int shmem_team_get_config(shmem_team_t team, shmem_team_config_t* config);
#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_OPENSHMEM_SHMEM_H */

#endif /* MEMSPAN_DEVICE_CODE */

#endif /* MEMSPAN_ACLSHMEM_SHMEM_API_H */
