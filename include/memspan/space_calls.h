/* SPDX-License-Identifier: Apache-2.0
 *
 * The host device's part of the MemFabric device headers (smem/device/); programs call those.
 * memspan's own. C99 or C++11.
 */
#ifndef MEMSPAN_SPACE_CALLS_H
#define MEMSPAN_SPACE_CALLS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A space as this process sees it. */
typedef struct {
  uint32_t rank;
  uint32_t ranks;
  uint64_t bytes; /* of each rank's part */
  void* context;  /* what smem_shm_set_extra_context() gave; NULL: nothing yet */
  uint32_t context_bytes;
  uint32_t reserved;
} memspan_space_facts;

/* 1, or 0 when this process has made no space with this id, 0 to 63. The context's bytes stay where
 * they are until the space is destroyed; setting it again changes them in place. Thread-safe. */
int32_t memspan_space_facts_of(uint32_t id, memspan_space_facts* facts);

/* This thread's earlier writes are seen before its later ones. A function, since a thread
 * sanitizer's compiler refuses a fence in the program itself. */
void memspan_space_fence(void);

#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_SPACE_CALLS_H */
