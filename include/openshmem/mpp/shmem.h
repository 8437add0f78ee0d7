/* SPDX-License-Identifier: Apache-2.0
 *
 * The name that <shmem.h> had in older versions of OpenSHMEM (deprecated there).
 */
#ifndef MEMSPAN_OPENSHMEM_MPP_SHMEM_H
#define MEMSPAN_OPENSHMEM_MPP_SHMEM_H

#include "../shmem.h"

#endif /* MEMSPAN_OPENSHMEM_MPP_SHMEM_H */
