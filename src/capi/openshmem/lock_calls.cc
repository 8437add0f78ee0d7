// SPDX-License-Identifier: Apache-2.0
// Distributed locks.
#include "pgas/lock.h"

#include "capi/access.h"
#include "capi/openshmem/profiling_alias.h"

namespace memspan::capi {
namespace {

std::uint64_t* lock_word(const char* call, long* lock) {
  static_assert(sizeof(long) == sizeof(std::uint64_t));
  require_host_word(call, "lock", lock);
  return reinterpret_cast<std::uint64_t*>(lock);
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan::capi;
namespace pgas = memspan::pgas;

MEMSPAN_PROFILED(void, set_lock, (long* lock)) try {
  constexpr const char* kCall = "shmem_set_lock";
  std::uint64_t* word = lock_word(kCall, lock);
  require(kCall, pgas::lock(*process_state.world, kCall, word));
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_PROFILED(int, test_lock, (long* lock)) try {
  constexpr const char* kCall = "shmem_test_lock";
  std::uint64_t* word = lock_word(kCall, lock);
  const auto taken = pgas::try_lock(*process_state.world, word);
  return require(kCall, taken.status()) && *taken ? 0 : 1;
}
MEMSPAN_CATCH_AND_END(__func__)

// Completes this PE's puts before another PE can take the lock.
MEMSPAN_PROFILED(void, clear_lock, (long* lock)) try {
  constexpr const char* kCall = "shmem_clear_lock";
  std::uint64_t* word = lock_word(kCall, lock);
  pshmem_quiet();
  require(kCall, pgas::unlock(*process_state.world, kCall, word));
}
MEMSPAN_CATCH_AND_END(__func__)
