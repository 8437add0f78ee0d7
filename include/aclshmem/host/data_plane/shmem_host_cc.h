/* SPDX-License-Identifier: Apache-2.0
 *
 * CANN SHMEM: barriers by host code. Collective over the team, one thread at a time for each team;
 * nothing happens for ACLSHMEM_TEAM_INVALID.
 */
#ifndef MEMSPAN_ACLSHMEM_HOST_CC_H
#define MEMSPAN_ACLSHMEM_HOST_CC_H

#include "../shmem_host_def.h"

MEMSPAN_ACLSHMEM_BEGIN

#ifndef MEMSPAN_DEVICE_CODE /* where those for kernels are */
/* All earlier puts of all members are complete afterwards. */
ACLSHMEM_HOST_API void aclshmem_barrier(aclshmem_team_t team);
ACLSHMEM_HOST_API void aclshmem_barrier_all(void);
/* Only waits for the members. */
ACLSHMEM_HOST_API void aclshmem_sync(aclshmem_team_t team);
ACLSHMEM_HOST_API void aclshmem_sync_all(void);
#endif

/* Barriers in the order of a stream. The direct forms come after what was given to the library's
 * own stream (NULL); of other streams the program says when they are through. */
ACLSHMEM_HOST_API void aclshmemx_barrier_on_stream(aclshmem_team_t team, aclrtStream stream);
ACLSHMEM_HOST_API void aclshmemx_barrier_all_on_stream(aclrtStream stream);
/* Completes the puts of all members of handle.team_id; a barrier on the stream. */
ACLSHMEM_HOST_API void aclshmemx_handle_wait(aclshmem_handle_t handle, aclrtStream stream);

/* A word that kernels of the originals are given; 0. */
ACLSHMEM_HOST_API uint64_t util_get_ffts_config(void);

MEMSPAN_ACLSHMEM_END

#endif
