// SPDX-License-Identifier: Apache-2.0
// Launches the device code of cann_kernel.cc on every PE.
#include "cann_kernel.h"

#include <aclshmem.h>
#include <memspan/launch.h>
#include <memspan/memspan.h>

#include <cstdio>
#include <cstdlib>

int main() {
  const char* const rank = std::getenv("RANK");
  const char* const size = std::getenv("WORLD_SIZE");
  if (rank == nullptr || size == nullptr) return 1;
  aclshmemx_init_attr_t attributes{};
  attributes.my_pe = std::atoi(rank);
  attributes.n_pes = std::atoi(size);
  attributes.local_mem_size = 16 << 20;
  if (aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &attributes) != ACLSHMEM_SUCCESS) return 1;
  auto* const words = static_cast<std::uint8_t*>(aclshmem_calloc(1, sizeof(KernelWords)));
  memspan_stream_t stream = nullptr;
  if (words == nullptr || memspan_stream_create(&stream) != 0) return 1;
  const int launched = memspan::launch(stream, kKernelBlocks, cann_kernel, words);
  const int code = launched != 0 ? launched : memspan_stream_synchronize(stream, UINT32_MAX);
  if (code != 0) std::fprintf(stderr, "%d: %s\n", code, memspan_last_error());
  memspan_stream_destroy(stream);
  aclshmem_free(words);
  const int ended = aclshmem_finalize();
  return code == 0 && ended == 0 ? 0 : 1;
}
