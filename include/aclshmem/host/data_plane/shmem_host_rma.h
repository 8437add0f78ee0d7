/* SPDX-License-Identifier: Apache-2.0
 *
 * CANN SHMEM: put and get by host code. `dest` and `source` of the other PE are named by symmetric
 * addresses; the local side may be any memory. A mistake prints a line and ends the process with
 * code 1. Thread-safe.
 *
 * Counts are of elements (of 8, 16, ... bits where the name ends in that number), of bytes where it
 * ends in `mem`; strides are elements. When a blocking form returns, its data are on their way and
 * the source may change; a barrier or aclshmemx_quiet_on_stream() completes it. Non-blocking forms
 * use the local memory until then.
 */
#ifndef MEMSPAN_ACLSHMEM_HOST_RMA_H
#define MEMSPAN_ACLSHMEM_HOST_RMA_H

#include "../shmem_host_def.h"

typedef enum { NO_NBI = 0, NBI = 1 } aclshmem_block_mode_t;

/* FUNC(name, type): the types of put and get. */
#define ACLSHMEM_TYPE_FUNC(FUNC) \
  FUNC(float, float);            \
  FUNC(double, double);          \
  FUNC(int8, int8_t);            \
  FUNC(int16, int16_t);          \
  FUNC(int32, int32_t);          \
  FUNC(int64, int64_t);          \
  FUNC(uint8, uint8_t);          \
  FUNC(uint16, uint16_t);        \
  FUNC(uint32, uint32_t);        \
  FUNC(uint64, uint64_t);        \
  FUNC(char, char)

MEMSPAN_ACLSHMEM_BEGIN

#ifndef MEMSPAN_DEVICE_CODE /* where those for kernels are */
#define MEMSPAN_TYPED(name, type)                                                                \
  ACLSHMEM_HOST_API void aclshmem_##name##_p(type* dst, const type value, int pe);               \
  ACLSHMEM_HOST_API type aclshmem_##name##_g(type* src, int32_t pe);                             \
  ACLSHMEM_HOST_API void aclshmem_##name##_put(type* dest, type* source, size_t nelems, int pe); \
  ACLSHMEM_HOST_API void aclshmem_##name##_put_nbi(type* dest, type* source, size_t nelems,      \
                                                   int pe);                                      \
  ACLSHMEM_HOST_API void aclshmem_##name##_get(type* dest, type* source, size_t nelems, int pe); \
  ACLSHMEM_HOST_API void aclshmem_##name##_get_nbi(type* dest, type* source, size_t nelems,      \
                                                   int pe);                                      \
  ACLSHMEM_HOST_API void aclshmem_##name##_iput(type* dest, type* source, ptrdiff_t dst,         \
                                                ptrdiff_t sst, size_t nelems, int pe);           \
  ACLSHMEM_HOST_API void aclshmem_##name##_iget(type* dest, type* source, ptrdiff_t dst,         \
                                                ptrdiff_t sst, size_t nelems, int pe)
ACLSHMEM_TYPE_FUNC(MEMSPAN_TYPED);
#undef MEMSPAN_TYPED

/* `elem_size` counts elements. */
#define MEMSPAN_SIZED(bits)                                                                        \
  ACLSHMEM_HOST_API void aclshmem_put##bits(void* dst, void* src, uint32_t elem_size, int32_t pe); \
  ACLSHMEM_HOST_API void aclshmem_put##bits##_nbi(void* dst, void* src, uint32_t elem_size,        \
                                                  int32_t pe);                                     \
  ACLSHMEM_HOST_API void aclshmem_get##bits(void* dst, void* src, uint32_t elem_size, int32_t pe); \
  ACLSHMEM_HOST_API void aclshmem_get##bits##_nbi(void* dst, void* src, uint32_t elem_size,        \
                                                  int32_t pe);                                     \
  ACLSHMEM_HOST_API void aclshmem_iput##bits(void* dest, void* source, ptrdiff_t dst,              \
                                             ptrdiff_t sst, size_t nelems, int pe);                \
  ACLSHMEM_HOST_API void aclshmem_iget##bits(void* dest, void* source, ptrdiff_t dst,              \
                                             ptrdiff_t sst, size_t nelems, int pe)
ACLSHMEM_SIZE_FUNC(MEMSPAN_SIZED);
#undef MEMSPAN_SIZED

ACLSHMEM_HOST_API void aclshmem_putmem(void* dst, void* src, size_t elem_size, int32_t pe);
ACLSHMEM_HOST_API void aclshmem_getmem(void* dst, void* src, size_t elem_size, int32_t pe);
ACLSHMEM_HOST_API void aclshmem_putmem_nbi(void* dst, void* src, size_t elem_size, int32_t pe);
ACLSHMEM_HOST_API void aclshmem_getmem_nbi(void* dst, void* src, size_t elem_size, int32_t pe);

/* The address at which loads and stores reach `pe`'s copy of the object, or NULL. */
ACLSHMEM_HOST_API void* aclshmem_ptr(void* ptr, int pe);
#endif

/* Runs in the order of a stream, while the caller continues; complete when the stream has reached
 * it. The memory of both sides is in use until then. A failure ends the process, as that of the
 * direct form. */
ACLSHMEM_HOST_API void aclshmemx_putmem_on_stream(void* dst, void* src, size_t elem_size,
                                                  int32_t pe, aclrtStream stream);
ACLSHMEM_HOST_API void aclshmemx_getmem_on_stream(void* dst, void* src, size_t elem_size,
                                                  int32_t pe, aclrtStream stream);
/* Completes all that this PE has put before the stream comes to it. */
ACLSHMEM_HOST_API void aclshmemx_quiet_on_stream(aclrtStream stream);

/* Scratch of the chip's engines: accepted, kept nowhere. rdma and udma need 128 bytes
 * (ACLSHMEM_INVALID_VALUE). */
ACLSHMEM_HOST_API int aclshmemx_set_rdma_config(uint64_t offset, uint32_t ub_size,
                                                uint32_t sync_id);
#ifndef MEMSPAN_DEVICE_CODE /* where those for kernels are */
ACLSHMEM_HOST_API int aclshmemx_set_mte_config(uint64_t offset, uint32_t ub_size, uint32_t sync_id);
ACLSHMEM_HOST_API int aclshmemx_set_sdma_config(uint64_t offset, uint32_t ub_size,
                                                uint32_t sync_id);
ACLSHMEM_HOST_API int aclshmemx_set_udma_config(uint64_t offset, uint32_t ub_size,
                                                uint32_t sync_id);
#endif

MEMSPAN_ACLSHMEM_END

#endif
