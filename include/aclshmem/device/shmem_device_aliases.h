// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, device code: the names without "acl" that it had first, until December 2025, which
// version 1.5 still takes for most of its functions. Those that 1.5 has no other name for are
// functions here.
#ifndef MEMSPAN_ACLSHMEM_DEVICE_ALIASES_H
#define MEMSPAN_ACLSHMEM_DEVICE_ALIASES_H

#include "shmem_device.h"

// Put and get of bytes; what concerns caches and scratch memory is accepted and not used.
#define MEMSPAN_DEVICE_EARLY_MOVE(direction)                                                      \
  ACLSHMEM_DEVICE void shmemx_mte_##direction##_mem_nbi(                                          \
      __gm__ std::int8_t* dst, __gm__ std::int8_t* src, std::uint32_t elem_size, std::int32_t pe, \
      bool) {                                                                                     \
    memspan::kernel::direction(dst, src, elem_size, pe);                                          \
  }                                                                                               \
  ACLSHMEM_DEVICE void shmemx_mte_##direction##_mem_nbi_low_level(                                \
      __gm__ std::int8_t* dst, __gm__ std::int8_t* src, __ubuf__ std::int8_t*, std::uint32_t,     \
      std::uint32_t elem_size, int pe, AscendC::TEventID, bool) {                                 \
    memspan::kernel::direction(dst, src, elem_size, pe);                                          \
  }
MEMSPAN_DEVICE_EARLY_MOVE(put)
MEMSPAN_DEVICE_EARLY_MOVE(get)
#undef MEMSPAN_DEVICE_EARLY_MOVE

// A barrier of all blocks of the team's members that are listed, `count` of them, in any order.
ACLSHMEM_DEVICE void shmemx_partial_barrier(aclshmem_team_t team, __gm__ std::uint32_t* pes,
                                            std::uint32_t count) {
  memspan_kernel_barrier_some(team, pes, count);
}
ACLSHMEM_DEVICE void shmemx_partial_barrier_vec(aclshmem_team_t team, __gm__ std::uint32_t* pes,
                                                std::uint32_t count) {
  memspan_kernel_barrier_some(team, pes, count);
}

#define shmem_team_t aclshmem_team_t
#define SHMEM_TEAM_INVALID ACLSHMEM_TEAM_INVALID
#define SHMEM_TEAM_WORLD ACLSHMEM_TEAM_WORLD
#define SHMEM_SIGNAL_SET ACLSHMEM_SIGNAL_SET
#define SHMEM_SIGNAL_ADD ACLSHMEM_SIGNAL_ADD
#define SHMEM_CMP_EQ ACLSHMEM_CMP_EQ
#define SHMEM_CMP_NE ACLSHMEM_CMP_NE
#define SHMEM_CMP_GT ACLSHMEM_CMP_GT
#define SHMEM_CMP_GE ACLSHMEM_CMP_GE
#define SHMEM_CMP_LT ACLSHMEM_CMP_LT
#define SHMEM_CMP_LE ACLSHMEM_CMP_LE
#define shmem_barrier aclshmem_barrier
#define shmem_barrier_all aclshmem_barrier_all
#define shmem_bfloat16_atomic_add aclshmem_bfloat16_atomic_add
#define shmem_bfloat16_g aclshmem_bfloat16_g
#define shmem_bfloat16_p aclshmem_bfloat16_p
#define shmem_char_g aclshmem_char_g
#define shmem_char_p aclshmem_char_p
#define shmem_double_g aclshmem_double_g
#define shmem_double_p aclshmem_double_p
#define shmem_fence aclshmem_fence
#define shmem_float_atomic_add aclshmem_float_atomic_add
#define shmem_float_g aclshmem_float_g
#define shmem_float_p aclshmem_float_p
#define shmem_get_bfloat16_mem aclshmem_bfloat16_get
#define shmem_get_bfloat16_mem_nbi aclshmem_bfloat16_get_nbi
#define shmem_get_char_mem aclshmem_char_get
#define shmem_get_char_mem_nbi aclshmem_char_get_nbi
#define shmem_get_double_mem aclshmem_double_get
#define shmem_get_double_mem_nbi aclshmem_double_get_nbi
#define shmem_get_float_mem aclshmem_float_get
#define shmem_get_float_mem_nbi aclshmem_float_get_nbi
#define shmem_get_half_mem aclshmem_half_get
#define shmem_get_half_mem_nbi aclshmem_half_get_nbi
#define shmem_get_int16_mem aclshmem_int16_get
#define shmem_get_int16_mem_nbi aclshmem_int16_get_nbi
#define shmem_get_int32_mem aclshmem_int32_get
#define shmem_get_int32_mem_nbi aclshmem_int32_get_nbi
#define shmem_get_int64_mem aclshmem_int64_get
#define shmem_get_int64_mem_nbi aclshmem_int64_get_nbi
#define shmem_get_int8_mem aclshmem_int8_get
#define shmem_get_int8_mem_nbi aclshmem_int8_get_nbi
#define shmem_get_uint16_mem aclshmem_uint16_get
#define shmem_get_uint16_mem_nbi aclshmem_uint16_get_nbi
#define shmem_get_uint32_mem aclshmem_uint32_get
#define shmem_get_uint32_mem_nbi aclshmem_uint32_get_nbi
#define shmem_get_uint64_mem aclshmem_uint64_get
#define shmem_get_uint64_mem_nbi aclshmem_uint64_get_nbi
#define shmem_get_uint8_mem aclshmem_uint8_get
#define shmem_get_uint8_mem_nbi aclshmem_uint8_get_nbi
#define shmem_getmem aclshmem_getmem
#define shmem_getmem_nbi aclshmem_getmem_nbi
#define shmem_half_atomic_add aclshmem_half_atomic_add
#define shmem_half_g aclshmem_half_g
#define shmem_half_p aclshmem_half_p
#define shmem_int16_atomic_add aclshmem_int16_atomic_add
#define shmem_int16_g aclshmem_int16_g
#define shmem_int16_p aclshmem_int16_p
#define shmem_int32_atomic_add aclshmem_int32_atomic_add
#define shmem_int32_g aclshmem_int32_g
#define shmem_int32_p aclshmem_int32_p
#define shmem_int64_g aclshmem_int64_g
#define shmem_int64_p aclshmem_int64_p
#define shmem_int8_atomic_add aclshmem_int8_atomic_add
#define shmem_int8_g aclshmem_int8_g
#define shmem_int8_p aclshmem_int8_p
#define shmem_mte_get_mem_nbi aclshmemx_mte_get_nbi
#define shmem_mte_put_mem_nbi aclshmemx_mte_put_nbi
#define shmem_mte_set_ub_params aclshmemx_set_mte_config
#define shmem_my_pe aclshmem_my_pe
#define shmem_n_pes aclshmem_n_pes
#define shmem_ptr aclshmem_ptr
#define shmem_put_bfloat16_mem aclshmem_bfloat16_put
#define shmem_put_bfloat16_mem_nbi aclshmem_bfloat16_put_nbi
#define shmem_put_bfloat16_mem_signal aclshmem_bfloat16_put_signal
#define shmem_put_bfloat16_mem_signal_nbi aclshmem_bfloat16_put_signal_nbi
#define shmem_put_char_mem aclshmem_char_put
#define shmem_put_char_mem_nbi aclshmem_char_put_nbi
#define shmem_put_char_mem_signal aclshmem_char_put_signal
#define shmem_put_char_mem_signal_nbi aclshmem_char_put_signal_nbi
#define shmem_put_double_mem aclshmem_double_put
#define shmem_put_double_mem_nbi aclshmem_double_put_nbi
#define shmem_put_double_mem_signal aclshmem_double_put_signal
#define shmem_put_double_mem_signal_nbi aclshmem_double_put_signal_nbi
#define shmem_put_float_mem aclshmem_float_put
#define shmem_put_float_mem_nbi aclshmem_float_put_nbi
#define shmem_put_float_mem_signal aclshmem_float_put_signal
#define shmem_put_float_mem_signal_nbi aclshmem_float_put_signal_nbi
#define shmem_put_half_mem aclshmem_half_put
#define shmem_put_half_mem_nbi aclshmem_half_put_nbi
#define shmem_put_half_mem_signal aclshmem_half_put_signal
#define shmem_put_half_mem_signal_nbi aclshmem_half_put_signal_nbi
#define shmem_put_int16_mem aclshmem_int16_put
#define shmem_put_int16_mem_nbi aclshmem_int16_put_nbi
#define shmem_put_int16_mem_signal aclshmem_int16_put_signal
#define shmem_put_int16_mem_signal_nbi aclshmem_int16_put_signal_nbi
#define shmem_put_int32_mem aclshmem_int32_put
#define shmem_put_int32_mem_nbi aclshmem_int32_put_nbi
#define shmem_put_int32_mem_signal aclshmem_int32_put_signal
#define shmem_put_int32_mem_signal_nbi aclshmem_int32_put_signal_nbi
#define shmem_put_int64_mem aclshmem_int64_put
#define shmem_put_int64_mem_nbi aclshmem_int64_put_nbi
#define shmem_put_int64_mem_signal aclshmem_int64_put_signal
#define shmem_put_int64_mem_signal_nbi aclshmem_int64_put_signal_nbi
#define shmem_put_int8_mem aclshmem_int8_put
#define shmem_put_int8_mem_nbi aclshmem_int8_put_nbi
#define shmem_put_int8_mem_signal aclshmem_int8_put_signal
#define shmem_put_int8_mem_signal_nbi aclshmem_int8_put_signal_nbi
#define shmem_put_uint16_mem aclshmem_uint16_put
#define shmem_put_uint16_mem_nbi aclshmem_uint16_put_nbi
#define shmem_put_uint16_mem_signal aclshmem_uint16_put_signal
#define shmem_put_uint16_mem_signal_nbi aclshmem_uint16_put_signal_nbi
#define shmem_put_uint32_mem aclshmem_uint32_put
#define shmem_put_uint32_mem_nbi aclshmem_uint32_put_nbi
#define shmem_put_uint32_mem_signal aclshmem_uint32_put_signal
#define shmem_put_uint32_mem_signal_nbi aclshmem_uint32_put_signal_nbi
#define shmem_put_uint64_mem aclshmem_uint64_put
#define shmem_put_uint64_mem_nbi aclshmem_uint64_put_nbi
#define shmem_put_uint64_mem_signal aclshmem_uint64_put_signal
#define shmem_put_uint64_mem_signal_nbi aclshmem_uint64_put_signal_nbi
#define shmem_put_uint8_mem aclshmem_uint8_put
#define shmem_put_uint8_mem_nbi aclshmem_uint8_put_nbi
#define shmem_put_uint8_mem_signal aclshmem_uint8_put_signal
#define shmem_put_uint8_mem_signal_nbi aclshmem_uint8_put_signal_nbi
#define shmem_putmem aclshmem_putmem
#define shmem_putmem_nbi aclshmem_putmem_nbi
#define shmem_putmem_signal aclshmem_putmem_signal
#define shmem_quiet aclshmem_quiet
#define shmem_roce_get_mem_nbi aclshmemx_roce_get_nbi
#define shmem_roce_ptr aclshmem_roce_ptr
#define shmem_roce_put_mem_nbi aclshmemx_roce_put_nbi
#define shmem_signal_wait_until aclshmem_signal_wait_until
#define shmem_team_my_pe aclshmem_team_my_pe
#define shmem_team_n_pes aclshmem_team_n_pes
#define shmem_team_pe_mapping aclshmem_team_pe_mapping
#define shmem_team_translate_pe aclshmem_team_translate_pe
#define shmem_uint16_g aclshmem_uint16_g
#define shmem_uint16_p aclshmem_uint16_p
#define shmem_uint32_g aclshmem_uint32_g
#define shmem_uint32_p aclshmem_uint32_p
#define shmem_uint64_g aclshmem_uint64_g
#define shmem_uint64_p aclshmem_uint64_p
#define shmem_uint8_g aclshmem_uint8_g
#define shmem_uint8_p aclshmem_uint8_p
#define shmemx_barrier_all_vec aclshmemx_barrier_all_vec
#define shmemx_barrier_vec aclshmemx_barrier_vec
#define shmemx_set_ffts_config util_set_ffts_config
#define shmemx_signal_op aclshmemx_signal_op
#define shmem_char_test aclshmem_char_test
#define shmem_float_test aclshmem_float_test
#define shmem_int8_test aclshmem_int8_test
#define shmem_int16_test aclshmem_int16_test
#define shmem_int32_test aclshmem_int32_test
#define shmem_int64_test aclshmem_int64_test
#define shmem_uint8_test aclshmem_uint8_test
#define shmem_uint16_test aclshmem_uint16_test
#define shmem_uint32_test aclshmem_uint32_test
#define shmem_uint64_test aclshmem_uint64_test
#define shmem_putmem_signal_nbi aclshmem_putmem_signal_nbi

#endif
