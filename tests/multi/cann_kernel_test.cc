// SPDX-License-Identifier: Apache-2.0
// Launches the device code of cann_kernel.cc on every PE.
#include "cann_kernel.h"

#include <aclshmem.h>
#include <memspan/launch.h>
#include <memspan/memspan.h>

#include <cstdio>
#include <cstdlib>

namespace {

// Of the PE that SHMEM_CYCLE_PROF_PE names, and none elsewhere.
bool is_counted_right(int pe) {
  aclshmem_prof_pe_t* counts = nullptr;
  aclshmemx_get_prof(&counts, false);
  bool is_right = counts->pe_id == pe;
  for (unsigned block = 0; block < kKernelBlocks; ++block) {
    const aclshmem_prof_block_t& of_block = counts->block_prof[block];
    const std::int64_t times = pe == 0 ? block + 1 : 0;
    is_right = is_right && of_block.ccount[0] == (pe == 0) && of_block.ccount[1023] == times &&
               of_block.ccount[1] == 0 && (of_block.cycles[0] > 0) == (pe == 0);
  }
  return is_right;
}

}  // namespace

int main() {
  setenv("SHMEM_CYCLE_PROF_PE", "0", 1);
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
  if (!is_counted_right(std::atoi(rank))) {
    aclshmemx_show_prof();
    return 1;
  }
  const int ended = aclshmem_finalize();
  return code == 0 && ended == 0 ? 0 : 1;
}
