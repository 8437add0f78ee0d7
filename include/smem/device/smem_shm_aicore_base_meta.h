// SPDX-License-Identifier: Apache-2.0
// Share Memory in kernels: what a space is, and the context that the host gave it
// (smem_shm_set_extra_context()). A space is named by the id that smem_shm_create() was given, 0 to
// 63. The addresses below are those of the originals' device. The host device has no memory at
// them; its getters ask the library.
#ifndef MEMSPAN_SMEM_SHM_AICORE_BASE_META_H
#define MEMSPAN_SMEM_SHM_AICORE_BASE_META_H

#include <cstdint>

#include "../../memspan/space_calls.h"
#include "smem_shm_aicore_base_define.h"

constexpr std::uint64_t SMEM_SHM_DEVICE_END_ADDR = 0x180000000000ULL - (1ULL << 30);
constexpr std::uint64_t SMEM_SHM_DEVICE_PRE_META_SIZE = 128;
constexpr std::uint64_t SMEM_SHM_DEVICE_GLOBAL_META_SIZE = SMEM_SHM_DEVICE_PRE_META_SIZE;
constexpr std::uint64_t SMEM_OBJECT_NUM_MAX = 511;
constexpr std::uint64_t SMEM_SHM_DEVICE_META_SIZE =
    SMEM_SHM_DEVICE_PRE_META_SIZE * SMEM_OBJECT_NUM_MAX + SMEM_SHM_DEVICE_GLOBAL_META_SIZE;
constexpr std::uint64_t SMEM_SHM_DEVICE_USER_CONTEXT_PRE_SIZE = 64ULL << 10;
constexpr std::uint64_t SMEM_SHM_DEVICE_INFO_SIZE =
    SMEM_SHM_DEVICE_USER_CONTEXT_PRE_SIZE * SMEM_OBJECT_NUM_MAX + SMEM_SHM_DEVICE_META_SIZE;
constexpr std::uint64_t SMEM_SHM_DEVICE_META_ADDR =
    SMEM_SHM_DEVICE_END_ADDR - SMEM_SHM_DEVICE_INFO_SIZE;
constexpr std::uint64_t SMEM_SHM_DEVICE_USER_CONTEXT_ADDR =
    SMEM_SHM_DEVICE_META_ADDR + SMEM_SHM_DEVICE_META_SIZE;

namespace memspan::device {

// UINT32_MAX, 0 and null where there is no such space.
inline memspan_space_facts space_facts(std::uint32_t id) {
  memspan_space_facts facts;
  if (memspan_space_facts_of(id, &facts) == 0) facts = {UINT32_MAX, UINT32_MAX, 0, nullptr, 0, 0};
  return facts;
}

}  // namespace memspan::device

SMEM_SHM_INLINE_AICORE std::uint32_t smem_shm_get_global_rank(std::uint32_t shmemId = 0) {
  return memspan::device::space_facts(shmemId).rank;
}
SMEM_SHM_INLINE_AICORE std::uint32_t smem_shm_get_global_rank_size(std::uint32_t shmemId = 0) {
  return memspan::device::space_facts(shmemId).ranks;
}
// Bytes of each rank's part.
SMEM_SHM_INLINE_AICORE std::uint64_t smem_shm_get_symmetric_size(std::uint32_t shmemId = 0) {
  return memspan::device::space_facts(shmemId).bytes;
}
// Kernels of the host device have no queue pairs: always null.
SMEM_SHM_INLINE_AICORE __gm__ void* smem_shm_get_qp_info_address(std::uint32_t shmemId = 0) {
  static_cast<void>(shmemId);
  return nullptr;
}
// Null until a context was set. Stays valid until the space is destroyed.
SMEM_SHM_INLINE_AICORE __gm__ void* smem_shm_get_extra_context_addr(std::uint32_t shmemId = 0) {
  return memspan::device::space_facts(shmemId).context;
}
SMEM_SHM_INLINE_AICORE std::uint32_t smem_shm_get_extra_context_size(std::uint32_t shmemId = 0) {
  return memspan::device::space_facts(shmemId).context_bytes;
}

#endif  // MEMSPAN_SMEM_SHM_AICORE_BASE_META_H
