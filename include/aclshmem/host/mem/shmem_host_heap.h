/* SPDX-License-Identifier: Apache-2.0
 *
 * CANN SHMEM: the symmetric heap. Collective over all PEs, with the same arguments, one thread at a
 * time; NULL on all when memory is short or the size is 0. Sizes in bytes. On the host device both
 * kinds of memory are one heap, and the kind is not looked at but for its value.
 */
#ifndef MEMSPAN_ACLSHMEM_HOST_HEAP_H
#define MEMSPAN_ACLSHMEM_HOST_HEAP_H

#include "../shmem_host_def.h"

MEMSPAN_ACLSHMEM_BEGIN

ACLSHMEM_HOST_API void* aclshmem_malloc(size_t size);
/* Zeroed. */
ACLSHMEM_HOST_API void* aclshmem_calloc(size_t nmemb, size_t size);
/* `alignment` is a power of two. */
ACLSHMEM_HOST_API void* aclshmem_align(size_t alignment, size_t size);
/* NULL has no effect on this PE. */
ACLSHMEM_HOST_API void aclshmem_free(void* ptr);

ACLSHMEM_HOST_API void* aclshmemx_malloc(
    size_t size, aclshmem_mem_type_t mem_type MEMSPAN_ACLSHMEM_DEFAULT(DEVICE_SIDE));
ACLSHMEM_HOST_API void* aclshmemx_calloc(
    size_t count, size_t size, aclshmem_mem_type_t mem_type MEMSPAN_ACLSHMEM_DEFAULT(DEVICE_SIDE));
ACLSHMEM_HOST_API void* aclshmemx_align(size_t alignment, size_t size,
                                        aclshmem_mem_type_t mem_type
                                            MEMSPAN_ACLSHMEM_DEFAULT(DEVICE_SIDE));
ACLSHMEM_HOST_API void aclshmemx_free(
    void* ptr, aclshmem_mem_type_t mem_type MEMSPAN_ACLSHMEM_DEFAULT(DEVICE_SIDE));
/* The address of the heap; NULL before the start. Local. */
ACLSHMEM_HOST_API void* aclshmemx_get_heap_base(
    aclshmem_mem_type_t mem_type MEMSPAN_ACLSHMEM_DEFAULT(DEVICE_SIDE));

MEMSPAN_ACLSHMEM_END

#endif
