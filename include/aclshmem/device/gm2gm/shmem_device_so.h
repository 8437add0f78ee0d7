// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, device code: puts with a signal. A PE that sees the signal sees the data.
#ifndef MEMSPAN_ACLSHMEM_DEVICE_SO_H
#define MEMSPAN_ACLSHMEM_DEVICE_SO_H

#include "../shmem_def.h"

// `Tensor` and `Shape` in all four ways.
#define MEMSPAN_DEVICE_SIGNAL(function, place, take, shape, count)                                \
  ACLSHMEM_DEVICE void function(place dst, place src, shape count, __gm__ std::int32_t* sig_addr, \
                                std::int32_t signal, int sig_op, int pe) {                        \
    memspan::device::put_signal(take(dst), take(src), count, sig_addr, signal, sig_op, pe);       \
  }
#define MEMSPAN_DEVICE_SIGNALS(function, type)                                                   \
  MEMSPAN_DEVICE_SIGNAL(function, __gm__ type*, , std::size_t, elem_size)                        \
  MEMSPAN_DEVICE_SIGNAL(function, __gm__ type*, , const non_contiguous_copy_param&, copy_params) \
  MEMSPAN_DEVICE_SIGNAL(function, AscendC::GlobalTensor<type>, memspan::device::address,         \
                        std::size_t, elem_size)                                                  \
  MEMSPAN_DEVICE_SIGNAL(function, AscendC::GlobalTensor<type>, memspan::device::address,         \
                        const non_contiguous_copy_param&, copy_params)
#define MEMSPAN_DEVICE_TYPED(name, type)                     \
  MEMSPAN_DEVICE_SIGNALS(aclshmem_##name##_put_signal, type) \
  MEMSPAN_DEVICE_SIGNALS(aclshmem_##name##_put_signal_nbi, type)
MEMSPAN_DEVICE_TYPES(MEMSPAN_DEVICE_TYPED)

#define MEMSPAN_DEVICE_SIGNAL_BYTES(function, bytes)                                            \
  ACLSHMEM_DEVICE void function(__gm__ void* dst, __gm__ void* src, std::size_t nelems,         \
                                __gm__ std::int32_t* sig_addr, std::int32_t signal, int sig_op, \
                                int pe) {                                                       \
    memspan::device::put_signal(static_cast<char*>(dst), static_cast<const char*>(src),         \
                                nelems*(bytes), sig_addr, signal, sig_op, pe);                  \
  }
#define MEMSPAN_DEVICE_SIZED(bits, bytes)                         \
  MEMSPAN_DEVICE_SIGNAL_BYTES(aclshmem_put##bits##_signal, bytes) \
  MEMSPAN_DEVICE_SIGNAL_BYTES(aclshmem_put##bits##_signal_nbi, bytes)
MEMSPAN_DEVICE_SIZES(MEMSPAN_DEVICE_SIZED)
MEMSPAN_DEVICE_SIGNAL_BYTES(aclshmem_putmem_signal, 1)
MEMSPAN_DEVICE_SIGNAL_BYTES(aclshmem_putmem_signal_nbi, 1)

#undef MEMSPAN_DEVICE_SIGNAL
#undef MEMSPAN_DEVICE_SIGNALS
#undef MEMSPAN_DEVICE_TYPED
#undef MEMSPAN_DEVICE_SIGNAL_BYTES
#undef MEMSPAN_DEVICE_SIZED

#endif
