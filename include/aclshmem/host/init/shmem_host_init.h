/* SPDX-License-Identifier: Apache-2.0
 *
 * CANN SHMEM: start and end of a job. Functions give 0 or a code (ACLSHMEM_*), and
 * memspan_last_error() (<memspan/memspan.h>) then says why. One thread at a time; the settings are
 * thread-safe.
 */
#ifndef MEMSPAN_ACLSHMEM_HOST_INIT_H
#define MEMSPAN_ACLSHMEM_HOST_INIT_H

#include "../shmem_host_def.h"

MEMSPAN_ACLSHMEM_BEGIN

/* ACLSHMEM_STATUS_*. */
ACLSHMEM_HOST_API int aclshmemx_init_status(void);
/* Joins the job; collective over attributes->n_pes processes. A process that oshrun started must
 * pass the PE number and job size that oshrun gave it. */
ACLSHMEM_HOST_API int aclshmemx_init_attr(aclshmemx_bootstrap_t bootstrap_flags,
                                          aclshmemx_init_attr_t* attributes);
/* Collective. 0 also when there is nothing to leave (any more). */
ACLSHMEM_HOST_API int aclshmem_finalize(void);
/* The same for the instance of that number; ACLSHMEM_INVALID_VALUE if no such instance exists. */
ACLSHMEM_HOST_API int aclshmemx_finalize(uint64_t instance_id);

/* The data that other processes need to connect to this one, which accepts them until it ends. */
ACLSHMEM_HOST_API int aclshmemx_get_uniqueid(aclshmemx_uniqueid_t* uid);
/* Fills in all but option_attr and ip_port, and keeps a copy of the id; joins nothing. */
ACLSHMEM_HOST_API int aclshmemx_set_attr_uniqueid_args(int my_pe, int n_pes, int64_t local_mem_size,
                                                       aclshmemx_uniqueid_t* uid,
                                                       aclshmemx_init_attr_t* aclshmem_attr);

#if !defined MEMSPAN_DEVICE_CODE || !defined MULTI_INSTANCE /* where the kernels' are */
/* The current instance, which calls act on; NULL when the process is not in that job. Valid until
 * the next call. */
ACLSHMEM_HOST_API aclshmem_instance_ctx* aclshmemx_instance_ctx_get(void);
/* Makes an instance current: everything called from now on acts on it. Waits for all work that was
 * given to streams, at most the job's control_operation_timeout; no thread is in another call.
 * ACLSHMEM_INVALID_VALUE for an instance that does not exist, ACLSHMEM_INVALID_PARAM in work of a
 * stream. */
ACLSHMEM_HOST_API int aclshmemx_instance_ctx_set(uint64_t instance_id);
#endif

/* Before joining; all copy what they are given. See shmem_set_conf_store_tls() in
 * <shmem_api.h>. */
ACLSHMEM_HOST_API int32_t aclshmemx_set_conf_store_tls(bool enable, const char* tls_info,
                                                       const uint32_t tls_info_len);
ACLSHMEM_HOST_API int32_t aclshmemx_set_config_store_tls_key(
    const char* tls_pk, const uint32_t tls_pk_len, const char* tls_pk_pw,
    const uint32_t tls_pk_pw_len, const aclshmem_decrypt_handler decrypt_handler);

/* 1 and 1. A NULL is not written to. */
ACLSHMEM_HOST_API void aclshmem_info_get_version(int* major, int* minor);
/* Up to ACLSHMEM_MAX_NAME_LEN bytes. */
ACLSHMEM_HOST_API void aclshmem_info_get_name(char* name);
/* Ends all processes of the job with that code. Any thread of any PE. */
ACLSHMEM_HOST_API void aclshmem_global_exit(int status);

MEMSPAN_ACLSHMEM_END

#ifdef __cplusplus
/* As sources between versions 1.4 and 1.5 call it. */
inline int aclshmem_finalize(uint64_t instance_id) {
  return aclshmemx_finalize(instance_id);
}
#endif

#endif
