// SPDX-License-Identifier: Apache-2.0
// Device code in the originals' style, compiled as such (MEMSPAN_DEVICE_CODE): what the names do.
// cann_kernel_test.cc launches it.
#include <shmem.h>
#include <utils/prof/shmemi_prof.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "cann_kernel.h"

namespace {

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "PE %d, block %ld, line %d: %s\n", aclshmem_my_pe(),      \
                   static_cast<long>(AscendC::GetBlockIdx()), __LINE__, #condition); \
      std::_Exit(1);                                                                 \
    }                                                                                \
  } while (false)

int next_pe() {
  return (aclshmem_my_pe() + 1) % aclshmem_n_pes();
}
int previous_pe() {
  return (aclshmem_my_pe() + aclshmem_n_pes() - 1) % aclshmem_n_pes();
}

// Each block has its own part of the words.
__aicore__ void move(KernelWords* words) {
  const auto block = static_cast<int>(AscendC::GetBlockIdx());
  const int me = aclshmem_my_pe();
  KernelPart* const part = &words->parts[block];
  float local[64];
  for (int i = 0; i < 64; ++i) local[i] = static_cast<float>(1000 * me + 10 * block + i);
  aclshmem_float_put(part->floats, local, 64, next_pe());
  aclshmem_quiet();
  aclshmem_barrier_all();
  CHECK(part->floats[63] == static_cast<float>(1000 * previous_pe() + 10 * block + 63));
  float back[4];
  aclshmem_float_iget(back, part->floats, 1, 16, 4, next_pe());
  CHECK(back[3] == local[48]);
  aclshmem_barrier_all();

  // A tensor's 4 x 4 in the middle of 8 x 8.
  AscendC::GlobalTensor<float> there;
  AscendC::LocalTensor<float> here;
  there.SetGlobalBuffer(part->floats, 64);
  here.SetAddr(local, 64);
  aclshmem_float_put_nbi(there[10], here[18], non_contiguous_copy_param{4, 4, 8, 8}, next_pe());
  aclshmemx_mte_put_nbi(there, here, 1, next_pe(), 0);
  aclshmem_barrier_all();
  CHECK(there.GetValue(10 + 27) == static_cast<float>(1000 * previous_pe() + 10 * block + 18 + 27));
  CHECK(there.GetValue(0) == static_cast<float>(1000 * previous_pe() + 10 * block));
  CHECK(there.GetSize() == 64 && there[10].GetSize() == 54);

  aclshmem_half_p(&part->halves[0], half(1.5F), next_pe());
  aclshmem_int8_p(&part->bytes[1], static_cast<std::int8_t>(-me), next_pe());
  aclshmem_barrier_all();
  CHECK(static_cast<float>(aclshmem_half_g(&part->halves[0], next_pe())) == 1.5F);
  CHECK(part->bytes[1] == -previous_pe() && part->bytes[0] == 0);
}

__aicore__ void signal(KernelWords* words) {
  const auto block = static_cast<int>(AscendC::GetBlockIdx());
  KernelPart* const part = &words->parts[block];
  for (int round = 1; round <= 10; ++round) {
    std::int64_t data[8] = {round, round, round, round, round, round, round, round};
    aclshmem_int64_put_signal(part->wide, data, std::size_t{8}, &part->signal, round,
                              ACLSHMEM_SIGNAL_SET, next_pe());
    CHECK(aclshmem_signal_wait_until(&part->signal, ACLSHMEM_CMP_GE, round) >= round);
    CHECK(part->wide[7] >= round);
    aclshmem_barrier_all();
  }
  aclshmemx_udma_put_signal_nbi(part->wide, part->wide + 4, 1, &part->wide_signal, 7, next_pe());
  aclshmem_uint64_wait_until(&part->wide_signal, ACLSHMEM_CMP_EQ, 7);
  std::size_t found[4];
  aclshmemx_signal_op(&part->set[2], 5, ACLSHMEM_SIGNAL_ADD, next_pe());
  CHECK(aclshmem_int32_wait_until_any(part->set, 4, nullptr, ACLSHMEM_CMP_NE, 0) == 2);
  CHECK(aclshmem_int32_test_some(part->set, 4, found, nullptr, ACLSHMEM_CMP_GT, 4) == 1);
  CHECK(found[0] == 2 && aclshmem_int32_test(&part->set[2], ACLSHMEM_CMP_EQ, 5) == 1);
}

// All blocks of all PEs add to the first part of PE 0.
__aicore__ void count(KernelWords* words) {
  KernelPart* const all = &words->parts[0];
  aclshmem_half_atomic_add(&all->halves[2], half(0.5F), 0);
  aclshmem_half_atomic_add(&all->halves[3], half(0.25F), 0);
  aclshmem_int8_atomic_add(&all->bytes[2], 1, 0);
  aclshmem_int16_atomic_add(&all->shorts[1], -2, 0);
  aclshmemx_roce_atomic_inc(&all->counter, 0);
  aclshmem_uint32_atomic_fetch_or(&all->bits, 1U << AscendC::GetBlockIdx(), 0);
  aclshmem_barrier_all();
  const int blocks = static_cast<int>(AscendC::GetBlockNum()) * aclshmem_n_pes();
  CHECK(static_cast<float>(aclshmem_half_g(&all->halves[2], 0)) ==
        0.5F * static_cast<float>(blocks));
  CHECK(static_cast<float>(aclshmem_half_g(&all->halves[3], 0)) ==
        0.25F * static_cast<float>(blocks));
  CHECK(aclshmem_int8_g(&all->bytes[2], 0) == blocks);
  CHECK(aclshmem_int16_g(&all->shorts[1], 0) == -2 * blocks);
  CHECK(aclshmem_int64_atomic_fetch(&all->counter, 0) == blocks);
  CHECK(aclshmem_uint32_g(&all->bits, 0) == (1U << AscendC::GetBlockNum()) - 1);
  aclshmem_barrier_all();
}

__aicore__ void check_types() {
  CHECK(static_cast<float>(half(65504.0F)) == 65504.0F && half(65519.9F).bits == 0x7bff);
  CHECK(half(65520.0F).bits == 0x7c00 && half(-1e30F).bits == 0xfc00);
  CHECK(half(0x1p-24F).bits == 1 && half(0x1p-25F).bits == 0 && half(0x1.8p-25F).bits == 1);
  CHECK(half(0x1.ff8p-15F).bits == 0x3ff && half(1.0F + 0x1p-11F).bits == 0x3c00);
  CHECK(half(1.0F + 0x1.8p-10F).bits == 0x3c02 && half(-0.0F).bits == 0x8000);
  CHECK(static_cast<float>(bfloat16_t(1.0F + 0x1p-8F)) == 1.0F);
  CHECK(static_cast<float>(bfloat16_t(1.0F + 0x1.8p-7F)) == 1.0F + 0x1p-6F);
  const float none = __builtin_nanf("");
  CHECK(static_cast<float>(half(none)) != static_cast<float>(half(none)));
  CHECK(static_cast<float>(bfloat16_t(none)) != static_cast<float>(bfloat16_t(none)));
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    half one;
    one.bits = static_cast<std::uint16_t>(bits);
    const float wide = one;
    CHECK(wide != wide || half(wide).bits == bits);
  }
}

// The names without "acl". All PEs but the second one meet, told in another order by each.
__aicore__ void early(KernelWords* words) {
  KernelPart* const part = &words->parts[AscendC::GetBlockIdx()];
  std::int64_t mine = shmem_my_pe() + 100;
  shmem_barrier_all();
  shmem_put_int64_mem(&part->wide[0], &mine, 1, next_pe());
  shmem_barrier_all();
  CHECK(part->wide[0] == previous_pe() + 100);
  if (shmem_my_pe() == 1) return;
  std::uint32_t some[2] = {0, 2};
  if (shmem_my_pe() == 2) std::swap(some[0], some[1]);
  const std::uint32_t count = shmem_n_pes() > 2 ? 2 : 1;
  const auto other = static_cast<int>(some[count - 1]);
  for (std::int64_t round = 1; round <= 3; ++round) {
    shmem_int64_p(&part->wide[round], 10 * round + shmem_my_pe(), other);
    shmemx_partial_barrier(SHMEM_TEAM_WORLD, some, count);
    CHECK(part->wide[round] == 10 * round + other);
  }
}

}  // namespace

__global__ __aicore__ void cann_kernel(GM_ADDR words) {
  SHMEMI_PROF_START(0);
  for (std::int64_t i = 0; i <= AscendC::GetBlockIdx(); ++i) {
    SHMEMI_PROF_START(1023);
    SHMEMI_PROF_END(1023);
  }
  SHMEMI_PROF_START(1024);  // there is none
  SHMEMI_PROF_END(1024);
  if (AscendC::GetBlockIdx() == 0) check_types();
  CHECK(aclshmem_team_n_pes(ACLSHMEM_TEAM_WORLD) == aclshmem_n_pes());
  CHECK(aclshmem_team_pe_mapping(ACLSHMEM_TEAM_WORLD, next_pe()) == next_pe());
  auto* const all = reinterpret_cast<KernelWords*>(words);
  CHECK(aclshmem_ptr(all, aclshmem_my_pe()) == all);
  move(all);
  signal(all);
  AscendC::SyncAll();
  count(all);
  early(all);
  SHMEMI_PROF_END(0);
  CHECK(simt::aclshmem_my_pe() == aclshmem_my_pe());
}
