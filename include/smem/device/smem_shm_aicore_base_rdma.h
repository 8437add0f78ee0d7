// SPDX-License-Identifier: Apache-2.0
// Share Memory in kernels: reads and writes that the originals give to a network card from the
// kernel. The host device has no queue pairs of its own: they are copies, complete at return, to
// the parts that smem_shm_topology_can_reach() says SMEMS_DATA_OP_MTE of. Queue numbers and the
// scratch tensors are accepted and have no meaning. The originals' structures of queues are
// missing, because nothing could fill them.
#ifndef MEMSPAN_SMEM_SHM_AICORE_BASE_RDMA_H
#define MEMSPAN_SMEM_SHM_AICORE_BASE_RDMA_H

#include <cstdint>
#include <cstring>

#include "../../memspan/space_calls.h"
#include "smem_shm_aicore_base_copy.h"

enum class OPCODE : std::uint32_t {
  SEND = 0,
  SEND_WITH_INV,
  SEND_WITH_IMM,
  RDMA_WRITE,
  RDMA_WRITE_WITH_IMM,
  RDMA_READ
};
enum class DBMode : std::int32_t { INVALID = -1, HW = 0, SW = 1 };

// This thread's earlier writes are seen no later than its next ones.
SMEM_SHM_INLINE_AICORE void cacheWriteThrough(__gm__ std::uint8_t* sourceAddr,
                                              std::uint64_t length) {
  static_cast<void>(sourceAddr);
  static_cast<void>(length);
  memspan_space_fence();
}

// RDMA_WRITE and RDMA_READ; what needs a receiver at the other end, ends the process.
SMEM_SHM_INLINE_AICORE void smem_shm_rdma_post_send(
    __gm__ std::uint8_t* remoteAddr, __gm__ std::uint8_t* localAddr, std::uint32_t destRankId,
    std::uint32_t qpIdx, OPCODE opCode, std::uint64_t messageLen,
    const AscendC::LocalTensor<std::uint64_t>& ubLocal64,
    const AscendC::LocalTensor<std::uint32_t>& ubLocal32) {
  static_cast<void>(destRankId);
  static_cast<void>(qpIdx);
  static_cast<void>(ubLocal64);
  static_cast<void>(ubLocal32);
  memspan::device::need_global_memory("smem_shm_rdma_post_send", remoteAddr);
  memspan::device::need_global_memory("smem_shm_rdma_post_send", localAddr);
  if (opCode == OPCODE::RDMA_WRITE) {
    std::memcpy(remoteAddr, localAddr, messageLen);
  } else if (opCode == OPCODE::RDMA_READ) {
    std::memcpy(localAddr, remoteAddr, messageLen);
  } else {
    std::fprintf(stderr,
                 "memspan: smem_shm_rdma_post_send: operation %u is not supported, allowed are "
                 "RDMA_WRITE (3) and RDMA_READ (5)\n",
                 static_cast<unsigned>(opCode));
    std::abort();
  }
}
template <typename T>
SMEM_SHM_INLINE_AICORE void smem_shm_roce_write(
    __gm__ T* srcDmaAddr, __gm__ T* destDmaAddr, std::uint32_t destRankId, std::uint32_t qpIdx,
    std::uint64_t messageLen, const AscendC::LocalTensor<std::uint64_t>& ubLocal64,
    const AscendC::LocalTensor<std::uint32_t>& ubLocal32) {
  smem_shm_rdma_post_send(reinterpret_cast<std::uint8_t*>(destDmaAddr),
                          reinterpret_cast<std::uint8_t*>(srcDmaAddr), destRankId, qpIdx,
                          OPCODE::RDMA_WRITE, messageLen, ubLocal64, ubLocal32);
}
template <typename T>
SMEM_SHM_INLINE_AICORE void smem_shm_roce_read(
    __gm__ T* srcDmaAddr, __gm__ T* destDmaAddr, std::uint32_t srcRankId, std::uint32_t qpIdx,
    std::uint64_t messageLen, const AscendC::LocalTensor<std::uint64_t>& ubLocal64,
    const AscendC::LocalTensor<std::uint32_t>& ubLocal32) {
  smem_shm_rdma_post_send(reinterpret_cast<std::uint8_t*>(srcDmaAddr),
                          reinterpret_cast<std::uint8_t*>(destDmaAddr), srcRankId, qpIdx,
                          OPCODE::RDMA_READ, messageLen, ubLocal64, ubLocal32);
}

// All that was posted to the rank is complete: 0, no failure.
SMEM_SHM_INLINE_AICORE std::uint32_t smem_shm_roce_poll_cq(
    std::uint32_t remoteRankId, std::uint32_t qpIdx, std::uint32_t idx,
    const AscendC::LocalTensor<std::uint64_t>& ubLocal64,
    const AscendC::LocalTensor<std::uint32_t>& ubLocal32) {
  static_cast<void>(remoteRankId);
  static_cast<void>(qpIdx);
  static_cast<void>(idx);
  static_cast<void>(ubLocal64);
  static_cast<void>(ubLocal32);
  return 0;
}
SMEM_SHM_INLINE_AICORE void smem_shm_roce_quiet(
    std::uint32_t remoteRankId, std::uint32_t qpIdx,
    const AscendC::LocalTensor<std::uint64_t>& ubLocal64,
    const AscendC::LocalTensor<std::uint32_t>& ubLocal32) {
  static_cast<void>(remoteRankId);
  static_cast<void>(qpIdx);
  static_cast<void>(ubLocal64);
  static_cast<void>(ubLocal32);
  memspan_space_fence();
}

#endif  // MEMSPAN_SMEM_SHM_AICORE_BASE_RDMA_H
