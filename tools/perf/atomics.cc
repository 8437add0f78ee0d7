// SPDX-License-Identifier: Apache-2.0
// Atomic operations of PE 0 on a word of the last PE, which no other PE uses during this.
#include <shmem.h>

#include "perf/meter.h"

namespace memspan::perf {
namespace {

template <typename Operation>
void measure(Meter& meter, const Test& test, Operation operation) {
  meter.measure(test, 0, Actors::kFirst, 1, [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) operation(i);
  });
}

}  // namespace

Status run_atomic(Meter& meter, const Test& test) {
  MEMSPAN_TRY_ASSIGN(std::byte* const memory, meter.symmetric(sizeof(uint64_t)), test.name);
  auto* const word = reinterpret_cast<uint64_t*>(memory);
  const int far = meter.far();
  if (test.name == "atomic-add")
    measure(meter, test, [&](std::size_t) {
      shmem_uint64_atomic_add(word, 1, far);
      shmem_quiet();
    });
  else if (test.name == "atomic-fetch-add")
    measure(meter, test, [&](std::size_t) { shmem_uint64_atomic_fetch_add(word, 1, far); });
  else if (test.name == "atomic-swap")
    measure(meter, test, [&](std::size_t i) { shmem_uint64_atomic_swap(word, i, far); });
  else if (test.name == "atomic-compare-swap")
    measure(meter, test, [&](std::size_t i) { shmem_uint64_atomic_compare_swap(word, i, i, far); });
  else
    measure(meter, test, [&](std::size_t) { shmem_uint64_atomic_fetch(word, far); });
  return Status::ok();
}

}  // namespace memspan::perf
