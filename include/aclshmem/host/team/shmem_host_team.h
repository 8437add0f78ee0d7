/* SPDX-License-Identifier: Apache-2.0
 *
 * CANN SHMEM: PEs and teams. Making and destroying a team is local, not collective. A PE that is
 * not a member gets ACLSHMEM_TEAM_INVALID. Queries are thread-safe.
 */
#ifndef MEMSPAN_ACLSHMEM_HOST_TEAM_H
#define MEMSPAN_ACLSHMEM_HOST_TEAM_H

#include "../shmem_host_def.h"

MEMSPAN_ACLSHMEM_BEGIN

#ifndef MEMSPAN_DEVICE_CODE /* where those for kernels are */
/* -1 before the start, and for an invalid team. */
ACLSHMEM_HOST_API int aclshmem_my_pe(void);
ACLSHMEM_HOST_API int aclshmem_n_pes(void);
ACLSHMEM_HOST_API int aclshmem_team_my_pe(aclshmem_team_t team);
ACLSHMEM_HOST_API int aclshmem_team_n_pes(aclshmem_team_t team);
/* -1 for an invalid team, or for a PE that is not in both teams. */
ACLSHMEM_HOST_API int aclshmem_team_translate_pe(aclshmem_team_t src_team, int src_pe,
                                                 aclshmem_team_t dest_team);
#endif

/* 0 or a code. PEs are numbered as in the parent team. */
ACLSHMEM_HOST_API int aclshmem_team_split_strided(aclshmem_team_t parent_team, int pe_start,
                                                  int pe_stride, int pe_size,
                                                  aclshmem_team_t* new_team);
/* Rows of `x_range` PEs each (of which the last may have fewer), and columns. */
ACLSHMEM_HOST_API int aclshmem_team_split_2d(aclshmem_team_t parent_team, int x_range,
                                             aclshmem_team_t* x_team, aclshmem_team_t* y_team);
ACLSHMEM_HOST_API int aclshmem_team_get_config(aclshmem_team_t team,
                                               aclshmem_team_config_t* config);
ACLSHMEM_HOST_API void aclshmem_team_destroy(aclshmem_team_t team);

MEMSPAN_ACLSHMEM_END

#endif
