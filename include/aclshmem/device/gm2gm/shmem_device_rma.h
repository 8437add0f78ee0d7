// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, device code: put and get between global memories. Counts are of elements, of mem
// forms of bytes. <device/ub2gm/shmem_device_rma.h> has the forms with local tensors.
#ifndef MEMSPAN_ACLSHMEM_DEVICE_RMA_H
#define MEMSPAN_ACLSHMEM_DEVICE_RMA_H

#include "../shmem_def.h"

// The address at which loads and stores reach it, or null.
ACLSHMEM_DEVICE __gm__ void* aclshmem_ptr(__gm__ void* ptr, int pe) {
  return memspan_kernel_ptr(ptr, pe);
}
// The address by which the network reaches it: null where there is no such thing.
ACLSHMEM_DEVICE __gm__ void* aclshmem_roce_ptr(__gm__ void* ptr, int pe) {
  return memspan_kernel_ptr(ptr, pe);
}

#define MEMSPAN_DEVICE_RMA(name, type)                                                   \
  ACLSHMEM_DEVICE void aclshmem_##name##_p(__gm__ type* dst, const type value, int pe) { \
    memspan::kernel::p(dst, value, pe);                                                  \
  }                                                                                      \
  ACLSHMEM_DEVICE type aclshmem_##name##_g(__gm__ type* src, std::int32_t pe) {          \
    return memspan::kernel::g(src, pe);                                                  \
  }                                                                                      \
  ACLSHMEM_DEVICE void aclshmem_##name##_iput(__gm__ type* dest, __gm__ type* source,    \
                                              std::ptrdiff_t dst, std::ptrdiff_t sst,    \
                                              std::size_t nelems, int pe) {              \
    memspan::kernel::iput(dest, source, dst, sst, nelems, pe);                           \
  }                                                                                      \
  ACLSHMEM_DEVICE void aclshmem_##name##_iget(__gm__ type* dest, __gm__ type* source,    \
                                              std::ptrdiff_t dst, std::ptrdiff_t sst,    \
                                              std::size_t nelems, int pe) {              \
    memspan::kernel::iget(dest, source, dst, sst, nelems, pe);                           \
  }                                                                                      \
  MEMSPAN_DEVICE_MOVE(put, aclshmem_##name##_put, type)                                  \
  MEMSPAN_DEVICE_MOVE(put_nbi, aclshmem_##name##_put_nbi, type)                          \
  MEMSPAN_DEVICE_MOVE(get, aclshmem_##name##_get, type)                                  \
  MEMSPAN_DEVICE_MOVE(get_nbi, aclshmem_##name##_get_nbi, type)                          \
  MEMSPAN_DEVICE_MOVE_MORE(put, aclshmem_##name##_put_nbi, type)                         \
  MEMSPAN_DEVICE_MOVE_MORE(get, aclshmem_##name##_get_nbi, type)
#define MEMSPAN_DEVICE_MOVE(operation, function, type)                                       \
  ACLSHMEM_DEVICE void function(__gm__ type* dst, __gm__ type* src, std::uint32_t elem_size, \
                                std::int32_t pe) {                                           \
    memspan::kernel::operation(dst, src, elem_size, pe);                                     \
  }
// Rows, and tensors.
#define MEMSPAN_DEVICE_MOVE_MORE(direction, function, type)                                       \
  ACLSHMEM_DEVICE void function(__gm__ type* dst, __gm__ type* src,                               \
                                const non_contiguous_copy_param& copy_params, std::int32_t pe) {  \
    memspan::kernel::direction##_2d(dst, src, memspan::device::rows(copy_params), pe);            \
  }                                                                                               \
  ACLSHMEM_DEVICE void function(AscendC::GlobalTensor<type> dst, AscendC::GlobalTensor<type> src, \
                                std::uint32_t elem_size, int pe) {                                \
    memspan::kernel::direction(dst.data(), src.data(), elem_size, pe);                            \
  }                                                                                               \
  ACLSHMEM_DEVICE void function(AscendC::GlobalTensor<type> dst, AscendC::GlobalTensor<type> src, \
                                const non_contiguous_copy_param& copy_params, int pe) {           \
    memspan::kernel::direction##_2d(dst.data(), src.data(), memspan::device::rows(copy_params),   \
                                    pe);                                                          \
  }
MEMSPAN_DEVICE_TYPES(MEMSPAN_DEVICE_RMA)

#define MEMSPAN_DEVICE_MOVE_BYTES(operation, function, bytes)                                \
  ACLSHMEM_DEVICE void function(__gm__ void* dst, __gm__ void* src, std::uint32_t elem_size, \
                                std::int32_t pe) {                                           \
    memspan::kernel::operation(dst, src, std::size_t{elem_size} * (bytes), pe);              \
  }
#define MEMSPAN_DEVICE_MOVE_STRIDED(rows, function, bytes)                                   \
  ACLSHMEM_DEVICE void function(__gm__ void* dest, __gm__ void* source, std::ptrdiff_t dst,  \
                                std::ptrdiff_t sst, std::size_t nelems, int pe) {            \
    memspan_kernel_##rows##_rows(dest, source, dst*(bytes), sst*(bytes), bytes, nelems, pe); \
  }
#define MEMSPAN_DEVICE_SIZED(bits, bytes)                                \
  MEMSPAN_DEVICE_MOVE_BYTES(putmem, aclshmem_put##bits, bytes)           \
  MEMSPAN_DEVICE_MOVE_BYTES(putmem_nbi, aclshmem_put##bits##_nbi, bytes) \
  MEMSPAN_DEVICE_MOVE_BYTES(getmem, aclshmem_get##bits, bytes)           \
  MEMSPAN_DEVICE_MOVE_BYTES(getmem_nbi, aclshmem_get##bits##_nbi, bytes) \
  MEMSPAN_DEVICE_MOVE_STRIDED(put, aclshmem_iput##bits, bytes)           \
  MEMSPAN_DEVICE_MOVE_STRIDED(get, aclshmem_iget##bits, bytes)
MEMSPAN_DEVICE_SIZES(MEMSPAN_DEVICE_SIZED)
MEMSPAN_DEVICE_MOVE_BYTES(putmem, aclshmem_putmem, 1)
MEMSPAN_DEVICE_MOVE_BYTES(putmem_nbi, aclshmem_putmem_nbi, 1)
MEMSPAN_DEVICE_MOVE_BYTES(getmem, aclshmem_getmem, 1)
MEMSPAN_DEVICE_MOVE_BYTES(getmem_nbi, aclshmem_getmem_nbi, 1)

#undef MEMSPAN_DEVICE_RMA
#undef MEMSPAN_DEVICE_MOVE
#undef MEMSPAN_DEVICE_MOVE_MORE
#undef MEMSPAN_DEVICE_MOVE_BYTES
#undef MEMSPAN_DEVICE_MOVE_STRIDED
#undef MEMSPAN_DEVICE_SIZED

#endif
