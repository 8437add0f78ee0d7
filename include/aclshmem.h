/* SPDX-License-Identifier: Apache-2.0
 *
 * CANN SHMEM under its names of version 1.5, where <shmem.h> is OpenSHMEM's.
 */
#ifndef MEMSPAN_ACLSHMEM_H
#define MEMSPAN_ACLSHMEM_H

#define MEMSPAN_NO_ACLSHMEM_ALIASES
#include "aclshmem/shmem.h"
#undef MEMSPAN_NO_ACLSHMEM_ALIASES

#endif
