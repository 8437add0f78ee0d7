// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, SIMT code: put and get for a thread, a warp and a block. All threads of a warp or
// block give the same arguments, and its first does it. Local memory is ordinary memory.
#ifndef MEMSPAN_ACLSHMEM_SIMT_RMA_H
#define MEMSPAN_ACLSHMEM_SIMT_RMA_H

#include "engine/shmem_device_simt_mte.h"

namespace simt {

#define MEMSPAN_SIMT_MOVE(operation, scope, function, type)                                \
  ACLSHMEM_DEVICE void function(__gm__ type* dst, __gm__ type* src, std::size_t elem_size, \
                                std::int32_t pe) {                                         \
    if (memspan::device::leads<memspan::kernel::Scope::scope>())                           \
      memspan::kernel::operation(dst, src, elem_size, pe);                                 \
  }
#define MEMSPAN_SIMT_MOVES(operation, name, type)                                  \
  MEMSPAN_SIMT_MOVE(operation, kThread, aclshmem_##name##_##operation, type)       \
  MEMSPAN_SIMT_MOVE(operation, kWarp, aclshmemx_##name##_##operation##_warp, type) \
  MEMSPAN_SIMT_MOVE(operation, kBlock, aclshmemx_##name##_##operation##_block, type)
#define MEMSPAN_SIMT_TYPED(name, type)                                                   \
  ACLSHMEM_DEVICE void aclshmem_##name##_p(__gm__ type* dst, const type value, int pe) { \
    memspan::kernel::p(dst, value, pe);                                                  \
  }                                                                                      \
  ACLSHMEM_DEVICE type aclshmem_##name##_g(__gm__ type* src, std::int32_t pe) {          \
    return memspan::kernel::g(src, pe);                                                  \
  }                                                                                      \
  MEMSPAN_SIMT_MOVES(put, name, type)                                                    \
  MEMSPAN_SIMT_MOVES(put_nbi, name, type)                                                \
  MEMSPAN_SIMT_MOVES(get, name, type)                                                    \
  MEMSPAN_SIMT_MOVES(get_nbi, name, type)
MEMSPAN_SIMT_TYPED(half, half)
MEMSPAN_SIMT_TYPED(float, float)
MEMSPAN_SIMT_TYPED(int8, std::int8_t)
MEMSPAN_SIMT_TYPED(int16, std::int16_t)
MEMSPAN_SIMT_TYPED(uint8, std::uint8_t)
MEMSPAN_SIMT_TYPED(uint16, std::uint16_t)
MEMSPAN_SIMT_TYPED(char, signed char)
MEMSPAN_SIMT_TYPED(char, unsigned char)
MEMSPAN_SIMT_TYPED(bfloat16, bfloat16_t)
MEMSPAN_DEVICE_INTEGERS_4_8(MEMSPAN_SIMT_TYPED)

#define MEMSPAN_SIMT_BYTES(operation, scope, function, bytes)                           \
  ACLSHMEM_DEVICE void function(__gm__ void* dst, __gm__ void* src, std::size_t nelems, \
                                std::int32_t pe) {                                      \
    if (memspan::device::leads<memspan::kernel::Scope::scope>())                        \
      memspan::kernel::operation(dst, src, nelems*(bytes), pe);                         \
  }
#define MEMSPAN_SIMT_SCOPES(operation, name, nbi, bytes)                         \
  MEMSPAN_SIMT_BYTES(operation##nbi, kThread, aclshmem_##name##nbi, bytes)       \
  MEMSPAN_SIMT_BYTES(operation##nbi, kWarp, aclshmemx_##name##nbi##_warp, bytes) \
  MEMSPAN_SIMT_BYTES(operation##nbi, kBlock, aclshmemx_##name##nbi##_block, bytes)
#define MEMSPAN_SIMT_SIZED(bits, bytes)               \
  MEMSPAN_SIMT_SCOPES(putmem, put##bits, , bytes)     \
  MEMSPAN_SIMT_SCOPES(putmem, put##bits, _nbi, bytes) \
  MEMSPAN_SIMT_SCOPES(getmem, get##bits, , bytes)     \
  MEMSPAN_SIMT_SCOPES(getmem, get##bits, _nbi, bytes)
MEMSPAN_DEVICE_SIZES(MEMSPAN_SIMT_SIZED)
MEMSPAN_SIMT_SIZED(mem, 1)

#undef MEMSPAN_SIMT_MOVE
#undef MEMSPAN_SIMT_MOVES
#undef MEMSPAN_SIMT_TYPED
#undef MEMSPAN_SIMT_BYTES
#undef MEMSPAN_SIMT_SCOPES
#undef MEMSPAN_SIMT_SIZED

}  // namespace simt

#endif
