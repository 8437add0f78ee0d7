/* SPDX-License-Identifier: Apache-2.0
 *
 * CANN SHMEM: puts with a signal, and signals by host code. A signal is a 32-bit word that `pe` has
 * at the symmetric address; ACLSHMEM_SIGNAL_SET stores, ACLSHMEM_SIGNAL_ADD adds, both atomically.
 * A PE that sees the signal sees the data. Thread-safe.
 */
#ifndef MEMSPAN_ACLSHMEM_HOST_SO_H
#define MEMSPAN_ACLSHMEM_HOST_SO_H

#include "shmem_host_rma.h"

MEMSPAN_ACLSHMEM_BEGIN

#ifndef MEMSPAN_DEVICE_CODE /* where those for kernels are */
/* `elem_size` counts elements. */
#define MEMSPAN_TYPED(name, type)                                                                 \
  ACLSHMEM_HOST_API void aclshmem_##name##_put_signal(type* dst, type* src, size_t elem_size,     \
                                                      uint8_t* sig_addr, int32_t signal,          \
                                                      int sig_op, int pe);                        \
  ACLSHMEM_HOST_API void aclshmem_##name##_put_signal_nbi(type* dst, type* src, size_t elem_size, \
                                                          uint8_t* sig_addr, int32_t signal,      \
                                                          int sig_op, int pe)
ACLSHMEM_TYPE_FUNC(MEMSPAN_TYPED);
#undef MEMSPAN_TYPED

#define MEMSPAN_SIZED(bits)                                                                        \
  ACLSHMEM_HOST_API void aclshmem_put##bits##_signal(                                              \
      void* dst, void* src, size_t nelems, int32_t* sig_addr, int32_t signal, int sig_op, int pe); \
  ACLSHMEM_HOST_API void aclshmem_put##bits##_signal_nbi(                                          \
      void* dst, void* src, size_t nelems, int32_t* sig_addr, int32_t signal, int sig_op, int pe)
ACLSHMEM_SIZE_FUNC(MEMSPAN_SIZED);
#undef MEMSPAN_SIZED
#endif

/* `elem_size` in bytes. */
ACLSHMEM_HOST_API void aclshmemx_putmem_signal(void* dst, void* src, size_t elem_size,
                                               void* sig_addr, int32_t signal, int sig_op, int pe);
ACLSHMEM_HOST_API void aclshmemx_putmem_signal_nbi(void* dst, void* src, size_t elem_size,
                                                   void* sig_addr, int32_t signal, int sig_op,
                                                   int pe);

ACLSHMEM_HOST_API void aclshmemx_signal_op_on_stream(int32_t* sig_addr, int32_t signal, int sig_op,
                                                     int pe, aclrtStream stream);

MEMSPAN_ACLSHMEM_END

#endif
