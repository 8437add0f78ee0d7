/* SPDX-License-Identifier: Apache-2.0
 * Kernels of the tests of Share Memory. */
#ifndef MEMSPAN_TESTS_FABRIC_SHM_KERNEL_H
#define MEMSPAN_TESTS_FABRIC_SHM_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the host tells a kernel by the space's context, and what it says of it. */
struct kernel_context {
  uint64_t source; /* addresses in the space */
  uint64_t dest;
  uint32_t rank;  /* whose part dest is in */
  uint32_t wrong; /* bits of what was not as it should be */
};

/* Runs a kernel whose block b copies the b-th 64 numbers; all that it needs, it finds by the
 * space's id. The last 32 are rows of 5 with gaps of 3. Gives whether it could be run. */
int run_copy_kernel(uint32_t id, uint32_t rank, uint32_t ranks, uint64_t bytes);
/* The same bytes by the calls that the originals give to a network card. */
int run_network_kernel(uint32_t id);
/* Whether getters say that there is no such space. */
int is_no_space(uint32_t id);

#ifdef __cplusplus
}
#endif

#endif
