// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, device code: how often a block runs a piece of its kernel, and how long that takes.
// Counts of the PE that SHMEM_CYCLE_PROF_PE names; none are kept elsewhere. aclshmemx_get_prof()
// has them. Frames 0 to 1023, blocks 0 to 63; others are not counted. A frame ends in the block and
// on the thread that began it.
#ifndef MEMSPAN_ACLSHMEM_PROF_H
#define MEMSPAN_ACLSHMEM_PROF_H

#include "../../../memspan/kernel_calls.h"

#define SHMEMI_PROF_START(frame) memspan_kernel_begin_frame((int)(frame))
#define SHMEMI_PROF_END(frame) memspan_kernel_end_frame((int)(frame))

#endif
