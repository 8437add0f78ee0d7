/* SPDX-License-Identifier: Apache-2.0
 *
 * CANN SHMEM under its names of version 1.5, where <shmem.h> is OpenSHMEM's.
 */
#ifndef MEMSPAN_ACLSHMEM_H
#define MEMSPAN_ACLSHMEM_H

#include "aclshmem/shmem.h"

#endif
