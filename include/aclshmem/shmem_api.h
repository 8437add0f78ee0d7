/* SPDX-License-Identifier: Apache-2.0
 *
 * CANN SHMEM under the names that it had first (August to December 2025): a symmetric heap, teams,
 * put and get from host code. Of the later names, those by which programs start that load the
 * library at run time.
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

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return codes. */
#define SHMEM_SUCCESS 0
#define SHMEM_INVALID_PARAM (-1)
#define SHMEM_INVALID_VALUE (-2)
#define SHMEM_SMEM_ERROR (-3)
#define SHMEM_INNER_ERROR (-4)
#define SHMEM_NOT_INITED (-5)
#define SHMEM_BOOTSTRAP_ERROR (-6)
#define SHMEM_TIMEOUT_ERROR (-7)
#define SHMEM_MALLOC_FAILED (-8)
#define SHMEM_NOT_SUPPORTED (-100)

#define SHMEM_UNIQUEID_INTERNAL_LENGTH 60
#define SHMEM_IP_PORT_LENGTH 64

/* What shmem_init_status() gives. */
enum {
  SHMEM_STATUS_NOT_INITIALIZED = 0,
  SHMEM_STATUS_SHM_CREATED = 1,
  SHMEM_STATUS_IS_INITIALIZED = 2,
  SHMEM_STATUS_INVALID = INT_MAX
};

/* Engines that move data; a set of bits. */
typedef enum {
  SHMEM_DATA_OP_MTE = 0x01,
  SHMEM_DATA_OP_SDMA = 0x02,
  SHMEM_DATA_OP_ROCE = 0x04
} data_op_engine_type_t;

typedef struct {
  int version;
  data_op_engine_type_t data_op_engine_type;
  uint32_t shm_init_timeout; /* all three in seconds */
  uint32_t shm_create_timeout;
  uint32_t control_operation_timeout;
  int32_t sockFd;
} shmem_init_optional_attr_t;

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

/* The later structures. In C++ they have values that are good as they are: the MTE engine and
 * time-outs of 120 s. */
typedef shmem_init_optional_attr_t aclshmem_init_optional_attr_t;

#ifdef __cplusplus
#define MEMSPAN_DEFAULT(...) = __VA_ARGS__
#else
#define MEMSPAN_DEFAULT(...)
#endif

typedef struct aclshmemx_init_attr_t {
  int my_pe;
  int n_pes;
  char ip_port[SHMEM_IP_PORT_LENGTH] MEMSPAN_DEFAULT({});
  uint64_t local_mem_size;
  aclshmem_init_optional_attr_t option_attr MEMSPAN_DEFAULT(
      {(1 << 16) + sizeof(aclshmem_init_optional_attr_t), SHMEM_DATA_OP_MTE, 120, 120, 120, 0});
  void* comm_args MEMSPAN_DEFAULT(nullptr); /* an aclshmemx_uniqueid_t */
  uint64_t instance_id MEMSPAN_DEFAULT(0);  /* not looked at: a process is in one job */
} aclshmemx_init_attr_t;
#undef MEMSPAN_DEFAULT

#define ACLSHMEM_UNIQUE_ID_INNER_LEN 124

typedef struct {
  int32_t version;
  int my_pe;
  int n_pes;
  char internal[ACLSHMEM_UNIQUE_ID_INNER_LEN];
} aclshmemx_uniqueid_t;

/* By what processes find each other. */
typedef enum {
  ACLSHMEMX_INIT_WITH_DEFAULT = 1,  /* ip_port, else a unique id */
  ACLSHMEMX_INIT_WITH_MPI = 2,      /* SHMEM_NOT_SUPPORTED */
  ACLSHMEMX_INIT_WITH_UNIQUEID = 8, /* the unique id */
  ACLSHMEMX_INIT_MAX = INT_MIN
} aclshmemx_bootstrap_t;

/* Turns a password as it is stored into the one that opens the key; 0 means that it could. */
#ifdef __cplusplus
typedef int (*shmem_decrypt_handler)(const char* cipher, size_t cipher_len, char* plain,
                                     size_t& plain_len);
#else
typedef int (*shmem_decrypt_handler)(const char* cipher, size_t cipher_len, char* plain,
                                     size_t* plain_len);
#endif

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

/* Joins the job; collective over n_ranks processes. A process that oshrun started must give the
 * rank and size that it has there. */
int shmem_init_attr(shmem_init_attr_t* attributes);
/* Anything that the other processes need to find this one; the process stays reachable until it
 * ends. Sent to all, it is what shmem_set_attr_uniqueid_args() takes. */
int shmem_get_uniqueid(shmem_uniqueid_t* uid);
/* Joins by a unique id that rank 0 made; `attr` comes from shmem_set_attr(). */
int shmem_set_attr_uniqueid_args(int rank_id, int nranks, const shmem_uniqueid_t* uid,
                                 shmem_init_attr_t* attr);
int shmem_init_status(void);

/* The later forms of three of these. aclshmemx_set_attr_uniqueid_args() joins nothing: it fills in
 * everything but option_attr and ip_port, and copies the id; aclshmemx_init_attr() joins. */
int aclshmemx_init_attr(aclshmemx_bootstrap_t bootstrap_flags, aclshmemx_init_attr_t* attributes);
int aclshmemx_get_uniqueid(aclshmemx_uniqueid_t* uid);
int aclshmemx_set_attr_uniqueid_args(int my_pe, int n_pes, int64_t local_mem_size,
                                     aclshmemx_uniqueid_t* uid,
                                     aclshmemx_init_attr_t* aclshmem_attr);

/* Before joining; all four copy what they are given. The store speaks TLS unless it is turned off
 * by (false, NULL, 0). Without a call it is protected by a secret: of MEMSPAN_JOB_SECRET_FILE, or
 * one that only this user's processes on this host can read. (true, tls_info, length) asks for
 * certificates instead, which both sides show: "tlsCert: FILE; tlsCaPath: FOLDER; tlsCaFile: NAME,
 * NAME; tlsPk: FILE; tlsPkPwd: FILE; tlsCrlPath: FOLDER; tlsCrlFile: NAME". An entry that is
 * unknown, empty or there twice is SHMEM_INVALID_PARAM; a file that cannot be used fails the start.
 * The key (at most 10 KiB of PEM) and its password may be given as text instead; a handler, the
 * last one given, decrypts the password. Thread-safe. */
int32_t shmem_set_conf_store_tls(bool enable, const char* tls_info, const uint32_t tls_info_len);
int32_t aclshmemx_set_conf_store_tls(bool enable, const char* tls_info,
                                     const uint32_t tls_info_len);
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

/* By their later names, which are nobody else's. */

/* Collective. 0 also when there is nothing to leave (any more). */
int aclshmem_finalize(void);
/* The symmetric heap. Collective over all; NULL on all when memory is short or the size is 0. */
void* aclshmem_malloc(size_t size);
void* aclshmem_calloc(size_t nmemb, size_t size);
void* aclshmem_align(size_t alignment, size_t size);
void aclshmem_free(void* ptr);
/* Where `pe`'s copy of the object can be used directly, or NULL. */
void* aclshmem_ptr(void* ptr, int pe);

/* Put and get of `nelems` elements; the _signal forms then set or add to a 32-bit word of the PE:
 * who sees it sees the data. */
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
#define shmem_putmem_signal aclshmem_putmem_signal
#define shmem_putmem_signal_nbi aclshmem_putmem_signal_nbi
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
#define shmem_team_get_config aclshmem_team_get_config
#define shmem_team_destroy aclshmem_team_destroy

#ifdef __cplusplus
extern "C" {
#endif

void shmem_global_exit(int status);
void shmem_info_get_version(int* major, int* minor);
void shmem_info_get_name(char* name);

int shmem_my_pe(void);
int shmem_n_pes(void);

/* The size is in bytes; the remote side is named by a symmetric address. */
void shmem_putmem(void* dst, void* src, size_t elem_size, int32_t pe);
void shmem_getmem(void* dst, void* src, size_t elem_size, int32_t pe);
void shmem_putmem_nbi(void* dst, void* src, size_t elem_size, int32_t pe);
void shmem_getmem_nbi(void* dst, void* src, size_t elem_size, int32_t pe);

void shmem_putmem_signal(void* dst, void* src, size_t elem_size, void* sig_addr, int32_t signal,
                         int sig_op, int pe);
void shmem_putmem_signal_nbi(void* dst, void* src, size_t elem_size, void* sig_addr, int32_t signal,
                             int sig_op, int pe);

/* One element. */
#define MEMSPAN_EARLY_ELEMENT(name, type)                        \
  void aclshmem_##name##_p(type* dst, const type value, int pe); \
  type aclshmem_##name##_g(type* src, int32_t pe);
MEMSPAN_EARLY_ELEMENT(float, float)
MEMSPAN_EARLY_ELEMENT(double, double)
MEMSPAN_EARLY_ELEMENT(int8, int8_t)
MEMSPAN_EARLY_ELEMENT(int16, int16_t)
MEMSPAN_EARLY_ELEMENT(int32, int32_t)
MEMSPAN_EARLY_ELEMENT(int64, int64_t)
MEMSPAN_EARLY_ELEMENT(uint8, uint8_t)
MEMSPAN_EARLY_ELEMENT(uint16, uint16_t)
MEMSPAN_EARLY_ELEMENT(uint32, uint32_t)
MEMSPAN_EARLY_ELEMENT(uint64, uint64_t)
MEMSPAN_EARLY_ELEMENT(char, char)
#undef MEMSPAN_EARLY_ELEMENT

/* Does nothing for SHMEM_TEAM_INVALID. */
void shmem_barrier(shmem_team_t team);
void shmem_barrier_all(void);

/* Teams. Making and destroying one is local: any process may do it alone, and processes may give
 * different arguments. Who is not a member gets SHMEM_TEAM_INVALID. The members make the team
 * together at its first collective; teams of the same members share one. */
int shmem_team_my_pe(shmem_team_t team);
int shmem_team_n_pes(shmem_team_t team);
int shmem_team_split_strided(shmem_team_t parent_team, int pe_start, int pe_stride, int pe_size,
                             shmem_team_t* new_team);
int shmem_team_split_2d(shmem_team_t parent_team, int x_range, shmem_team_t* x_team,
                        shmem_team_t* y_team);
int shmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team);
int shmem_team_get_config(shmem_team_t team, shmem_team_config_t* config);
void shmem_team_destroy(shmem_team_t team);

#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_OPENSHMEM_SHMEM_H */

#endif /* MEMSPAN_ACLSHMEM_SHMEM_API_H */
