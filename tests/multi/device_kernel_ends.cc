// SPDX-License-Identifier: Apache-2.0
// How kernels on a device end badly: `device_kernel_ends CASE`.
#include <aclshmem.h>
#include <memspan/kernel.h>
#include <shmem.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace k = memspan::kernel;

namespace {

// A job of this process alone, whose calls wait for one second at most.
bool start_with_limit() {
  aclshmemx_uniqueid_t id{};
  aclshmemx_init_attr_t attributes{};
  if (aclshmemx_get_uniqueid(&id) != 0 ||
      aclshmemx_set_attr_uniqueid_args(0, 1, 1 << 20, &id, &attributes) != 0)
    return false;
  attributes.option_attr.control_operation_timeout = 1;
  return aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, &attributes) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  if (std::strcmp(what, "limit") != 0)
    shmem_init();
  else if (!start_with_limit())
    return 2;
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
  } else if (std::strcmp(what, "limit") == 0) {
    k::wait_until(words, k::Compare::kEqual, 1);
  } else if (std::strcmp(what, "finalized") == 0) {
    // PE 1 waits in shmem_finalize, whose barrier needs PE 0, which waits for a word of PE 1.
    if (shmem_my_pe() == 1) shmem_finalize();
    k::wait_until(words, k::Compare::kEqual, 1);
  }
  std::printf("went on\n");
  return 0;
}
