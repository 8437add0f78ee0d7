/* SPDX-License-Identifier: Apache-2.0
 *
 * CANN SHMEM: the log, and counts of cycles. Thread-safe.
 */
#ifndef MEMSPAN_ACLSHMEM_LOG_H
#define MEMSPAN_ACLSHMEM_LOG_H

#include "../shmem_host_def.h"

MEMSPAN_ACLSHMEM_BEGIN

/* The function gets every line of the log instead of stderr; NULL goes back. It must not call the
 * library. Levels: 0 debug, 1 info, 2 warn, 3 error, 4 fatal. 0 or a code. */
ACLSHMEM_HOST_API int32_t aclshmemx_set_extern_logger(void (*func)(int level, const char* msg));
ACLSHMEM_HOST_API int32_t aclshmemx_set_log_level(int level);

/* The counts of SHMEMI_PROF_START and _END (<utils/prof/shmemi_prof.h>) in kernels of this PE, if
 * SHMEM_CYCLE_PROF_PE names it. Points *out_profs, unless that is NULL, to the counts, which stay
 * the library's, and prints those that are not 0 when `verbose`. */
ACLSHMEM_HOST_API void aclshmemx_get_prof(aclshmem_prof_pe_t** out_profs, bool verbose);
/* aclshmemx_get_prof(NULL, true). */
ACLSHMEM_HOST_API void aclshmemx_show_prof(void);

MEMSPAN_ACLSHMEM_END

#endif
