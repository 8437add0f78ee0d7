// SPDX-License-Identifier: Apache-2.0
// How kernels on a device end badly: `device_kernel_ends CASE`.
#include <memspan/kernel.h>
#include <shmem.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace k = memspan::kernel;

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  shmem_init();
  auto* const words = static_cast<std::int64_t*>(shmem_calloc(2, sizeof(std::int64_t)));
  if (std::strcmp(what, "pe") == 0) {
    k::put(words, words + 1, 1, 99);
  } else if (std::strcmp(what, "address") == 0) {
    std::int64_t on_stack = 0;
    k::atomic_fetch_add(&on_stack, std::int64_t{1}, 0);
  } else if (std::strcmp(what, "misaligned") == 0) {
    k::atomic_inc(reinterpret_cast<std::int32_t*>(reinterpret_cast<char*>(words) + 2), 0);
    k::atomic_fetch(reinterpret_cast<std::int32_t*>(reinterpret_cast<char*>(words) + 2), 0);
  } else if (std::strcmp(what, "team") == 0) {
    k::sync(7);
  } else if (std::strcmp(what, "before") == 0) {
    shmem_finalize();
    k::p(words, std::int64_t{1}, 0);
  } else if (std::strcmp(what, "death") == 0) {
    shmem_barrier_all();
    if (shmem_my_pe() == 1) std::raise(SIGKILL);
    k::wait_until(words, k::Compare::kEqual, 1);
  } else if (std::strcmp(what, "death_in_barrier") == 0) {
    shmem_barrier_all();
    if (shmem_my_pe() == 1) std::raise(SIGKILL);
    k::barrier_all();
  }
  std::printf("went on\n");
  return 0;
}
