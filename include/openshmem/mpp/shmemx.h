/* SPDX-License-Identifier: Apache-2.0
 *
 * The name that <shmemx.h> had in older versions of OpenSHMEM (deprecated there).
 */
#ifndef MEMSPAN_OPENSHMEM_MPP_SHMEMX_H
#define MEMSPAN_OPENSHMEM_MPP_SHMEMX_H

#include "../shmemx.h"

#endif /* MEMSPAN_OPENSHMEM_MPP_SHMEMX_H */
