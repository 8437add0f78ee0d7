/* SPDX-License-Identifier: Apache-2.0
 *
 * Extensions to OpenSHMEM, all named shmemx_ or SHMEMX_. There are none yet.
 */
#ifndef MEMSPAN_OPENSHMEM_SHMEMX_H
#define MEMSPAN_OPENSHMEM_SHMEMX_H

#include "shmem.h"

#endif /* MEMSPAN_OPENSHMEM_SHMEMX_H */
