// SPDX-License-Identifier: Apache-2.0
// ring.c in AscendC: kernel, launch and host in one source.
#include <acl/acl.h>
#include <kernel_operator.h>
#include <shmem.h>

#include <cstdio>
#include <cstdlib>

extern "C" __global__ __aicore__ void send(GM_ADDR word) {
  const int me = aclshmem_my_pe();
  aclshmem_int32_p(reinterpret_cast<__gm__ int32_t*>(word), me, (me + 1) % aclshmem_n_pes());
  aclshmem_barrier_all();
}

int main() {
  const char* const rank = std::getenv("RANK");
  const char* const size = std::getenv("WORLD_SIZE");
  if (rank == nullptr || size == nullptr) return 1;
  aclshmemx_init_attr_t attributes{};
  attributes.my_pe = std::atoi(rank);
  attributes.n_pes = std::atoi(size);
  attributes.local_mem_size = 1 << 20;
  attributes.option_attr = {0, ACLSHMEM_DATA_OP_MTE, 120, 120, 120, 0};
  if (aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &attributes) != ACLSHMEM_SUCCESS) return 1;
  aclrtStream stream = nullptr;
  if (aclrtCreateStream(&stream) != 0) return 1;
  auto* const word = static_cast<uint8_t*>(aclshmem_calloc(1, sizeof(int32_t)));
  send<<<1, nullptr, stream>>>(word);
  if (aclrtSynchronizeStream(stream) != 0) return 1;
  std::printf("PE %d of %d got %d\n", aclshmem_my_pe(), aclshmem_n_pes(),
              *reinterpret_cast<int32_t*>(word));
  aclrtDestroyStream(stream);
  aclshmem_free(word);
  return aclshmem_finalize() == ACLSHMEM_SUCCESS ? 0 : 1;
}
