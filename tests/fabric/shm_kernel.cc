// SPDX-License-Identifier: Apache-2.0
// MemFabric's device functions, in kernels of the host device.
#include "fabric/shm_kernel.h"

#include <memspan/launch.h>
#include <smem/device/lowlevel/smem_shm_aicore_base_api.h>

namespace {

constexpr unsigned kBlocks = 4;
constexpr std::uint32_t kSeconds = 25;
constexpr std::uint32_t kNumbers = 64;  // of a block: 256 bytes

struct Buffer {
  alignas(32) std::uint32_t numbers[kNumbers];
};

kernel_context& context_of(std::uint32_t id) {
  return *static_cast<kernel_context*>(smem_shm_get_extra_context_addr(id));
}
std::uint32_t* of_block(std::uint64_t address) {
  return reinterpret_cast<std::uint32_t*>(address) + AscendC::GetBlockIdx() * kNumbers;
}

void check(bool is_right, unsigned bit, kernel_context& context) {
  if (!is_right) __atomic_fetch_or(&context.wrong, 1U << bit, __ATOMIC_RELAXED);
}

// A quarter by each form.
void copy_parts(std::uint32_t* dest, std::uint32_t* source) {
  constexpr std::uint32_t kQuarter = kNumbers / 4;
  constexpr std::uint32_t kBytes = kQuarter * sizeof(std::uint32_t);
  Buffer ub;
  smem_shm_copy_gm2ub(ub.numbers, source, kBytes);
  smem_shm_copy_ub2gm(dest, ub.numbers, kBytes);

  AscendC::GlobalTensor<std::uint32_t> from;
  AscendC::GlobalTensor<std::uint32_t> to;
  const AscendC::LocalTensor<std::uint32_t> between(ub.numbers, kNumbers);
  from.SetGlobalBuffer(source);
  to.SetGlobalBuffer(dest);
  smem_shm_copy_gm2ub(between, from[kQuarter], kBytes);
  smem_shm_copy_ub2gm(to[kQuarter], between, kBytes);

  // Two rows of 20 bytes, 12 apart in global memory and a unit of 32 bytes apart in the buffer.
  const AscendC::DataCopyExtParams in(2, 20, 12, 1, 0);
  const AscendC::DataCopyExtParams out(2, 20, 1, 12, 0);
  smem_shm_copy_gm2ub(ub.numbers, source + 2 * kQuarter, in);
  smem_shm_copy_ub2gm(dest + 2 * kQuarter, ub.numbers, out);
  smem_shm_copy_gm2ub(between, from[3 * kQuarter], in);
  smem_shm_copy_ub2gm(to[3 * kQuarter], between, out);
}

void copy_kernel(std::uint32_t id, std::uint32_t rank, std::uint32_t ranks, std::uint64_t bytes) {
  kernel_context& context = context_of(id);
  check(smem_shm_get_global_rank(id) == rank, 0, context);
  check(smem_shm_get_global_rank_size(id) == ranks, 1, context);
  check(smem_shm_get_symmetric_size(id) == bytes, 2, context);
  check(smem_shm_get_extra_context_size(id) == sizeof context, 3, context);
  check(smem_shm_get_qp_info_address(id) == nullptr, 4, context);
  copy_parts(of_block(context.dest), of_block(context.source));
}

void network_kernel(std::uint32_t id) {
  const AscendC::LocalTensor<std::uint64_t> wide;
  const AscendC::LocalTensor<std::uint32_t> narrow;
  const std::uint32_t dest = context_of(id).rank;
  std::uint32_t* const mine = of_block(context_of(id).source);
  std::uint32_t* const theirs = of_block(context_of(id).dest);
  constexpr std::uint64_t kBytes = kNumbers * sizeof(std::uint32_t);
  Buffer back;
  smem_shm_roce_write(mine, theirs, dest, 0, kBytes, wide, narrow);
  smem_shm_roce_read(theirs, back.numbers, dest, 0, kBytes, wide, narrow);
  smem_shm_roce_quiet(dest, 0, wide, narrow);
  check(smem_shm_roce_poll_cq(dest, 0, 1, wide, narrow) == 0, 5, context_of(id));
  check(std::memcmp(back.numbers, mine, kBytes) == 0, 6, context_of(id));
}

template <typename Kernel, typename... Arguments>
int run(Kernel kernel, Arguments... arguments) {
  memspan_stream_t stream = nullptr;
  if (memspan_stream_create(&stream) != 0) return 0;
  const bool ran = memspan::launch(stream, kBlocks, kernel, arguments...) == 0 &&
                   memspan_stream_synchronize(stream, kSeconds * 1000) == 0;
  return memspan_stream_destroy(stream) == 0 && ran ? 1 : 0;
}

}  // namespace

static_assert(SMEM_SHM_DEVICE_META_SIZE == 64 << 10);
static_assert(SMEM_SHM_DEVICE_INFO_SIZE == 32 << 20);
static_assert(SMEM_SHM_ALIGN_DOWN(63, 32) == 32 && SMEM_SHM_ALIGN_UP(33, 32) == 64);

int run_copy_kernel(std::uint32_t id, std::uint32_t rank, std::uint32_t ranks,
                    std::uint64_t bytes) {
  return run(copy_kernel, id, rank, ranks, bytes);
}

int run_network_kernel(std::uint32_t id) {
  return run(network_kernel, id);
}

int is_no_space(std::uint32_t id) {
  return smem_shm_get_global_rank(id) == UINT32_MAX &&
                 smem_shm_get_global_rank_size(id) == UINT32_MAX &&
                 smem_shm_get_symmetric_size(id) == 0 &&
                 smem_shm_get_extra_context_addr(id) == nullptr &&
                 smem_shm_get_extra_context_size(id) == 0
             ? 1
             : 0;
}
