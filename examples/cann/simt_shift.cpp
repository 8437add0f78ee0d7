// SPDX-License-Identifier: Apache-2.0
// SIMT code: each thread brings numbers of the PE before, in steps of the number of threads, and a
// warp brings the rest together. oshrun -n 2 simt_shift
#include <cstdio>
#include <cstdlib>

#include "acl/acl.h"
#include "kernel_operator.h"
#include "shmem.h"

constexpr int32_t COUNT = 4096;
constexpr int32_t BY_THREADS = 1000;

__simt_callee__ inline void by_threads(__gm__ int32_t* to, __gm__ int32_t* from, int32_t pe) {
  for (uint32_t i = threadIdx.x; i < BY_THREADS; i += blockDim.x)
    to[i] = simt::aclshmem_int32_g(from + i, pe);
}

__simt_vf__ __launch_bounds__(1024) inline void shift_threads(__gm__ int32_t* to,
                                                              __gm__ int32_t* from) {
  const int32_t pes = simt::aclshmem_n_pes();
  const int32_t before = (simt::aclshmem_my_pe() + pes - 1) % pes;
  by_threads(to, from, before);
  simt::aclshmemx_int32_get_warp(to + BY_THREADS, from + BY_THREADS, COUNT - BY_THREADS, before);
}

__global__ __vector__ void shift(__gm__ int32_t* to, __gm__ int32_t* from) {
  asc_vf_call<shift_threads>(dim3(64), to, from);
}

int main() {
  const char* const size = std::getenv("WORLD_SIZE");
  const char* const rank = std::getenv("RANK");
  if (size == nullptr || rank == nullptr) {
    std::fprintf(stderr, "simt_shift: start it by oshrun\n");
    return 2;
  }
  aclshmemx_init_attr_t attributes{};
  attributes.n_pes = std::atoi(size);
  attributes.my_pe = std::atoi(rank);
  attributes.local_mem_size = 1UL << 20;
  if (aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &attributes) != ACLSHMEM_SUCCESS) return 1;
  auto* from = static_cast<int32_t*>(aclshmem_malloc(COUNT * sizeof(int32_t)));
  auto* to = static_cast<int32_t*>(aclshmem_malloc(COUNT * sizeof(int32_t)));
  const int pe = aclshmem_my_pe();
  const int before = (pe + aclshmem_n_pes() - 1) % aclshmem_n_pes();
  for (int32_t i = 0; i < COUNT; ++i) from[i] = pe * COUNT + i;
  aclshmem_barrier_all();
  shift<<<1, 0, nullptr>>>(to, from);
  if (aclrtSynchronizeStream(nullptr) != ACL_SUCCESS) return 1;
  int wrong = 0;
  for (int32_t i = 0; i < COUNT; ++i) wrong += to[i] != before * COUNT + i;
  std::printf("PE %d: %d numbers of PE %d: %s\n", pe, COUNT, before, wrong == 0 ? "PASS" : "ERROR");
  aclshmem_free(to);
  aclshmem_free(from);
  return aclshmem_finalize() + wrong;
}
