// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM's collectives of the world team.
#include <fmt/format.h>
#include <shmem.h>

#include <algorithm>

#include "perf/meter.h"

namespace memspan::perf {
namespace {

// Two arrays of so many bytes, the first to write to.
struct Arrays {
  std::byte* to;
  std::byte* from;
};

Result<Arrays> make_arrays(Meter& meter, std::size_t to, std::size_t from) {
  MEMSPAN_TRY_ASSIGN(std::byte* const written, meter.symmetric(to), "collectives");
  MEMSPAN_TRY_ASSIGN(std::byte* const read, meter.symmetric(from), "collectives");
  return Arrays{written, read};
}

// The library reports a collective that fails, and ends the job for a mistake.
template <typename Collective>
Status measure(Meter& meter, const Test& test, std::size_t least, Collective collective) {
  int failed = 0;
  for (const std::size_t bytes : meter.plan().sizes) {
    if (bytes < least) continue;
    meter.measure(test, bytes, Actors::kAll, 1, [&](std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) failed |= collective(bytes);
    });
  }
  if (failed == 0) return Status::ok();
  return {Code::kInternal, fmt::format("{}: the collective gave {}", test.name, failed)};
}

}  // namespace

Status run_barrier(Meter& meter, const Test& test) {
  meter.measure(test, 0, Actors::kAll, 1, [](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) shmem_barrier_all();
  });
  return Status::ok();
}

Status run_broadcast(Meter& meter, const Test& test) {
  const std::size_t most = meter.plan().sizes.back();
  MEMSPAN_TRY_ASSIGN(const Arrays arrays, make_arrays(meter, most, most), test.name);
  return measure(meter, test, 1, [&](std::size_t bytes) {
    return shmem_broadcastmem(SHMEM_TEAM_WORLD, arrays.to, arrays.from, bytes, 0);
  });
}

Status run_reduce(Meter& meter, const Test& test) {
  const std::size_t most = std::max(meter.plan().sizes.back(), sizeof(float));
  MEMSPAN_TRY_ASSIGN(const Arrays arrays, make_arrays(meter, most, most), test.name);
  return measure(meter, test, sizeof(float), [&](std::size_t bytes) {
    return shmem_float_sum_reduce(SHMEM_TEAM_WORLD, reinterpret_cast<float*>(arrays.to),
                                  reinterpret_cast<const float*>(arrays.from),
                                  bytes / sizeof(float));
  });
}

Status run_all_to_all(Meter& meter, const Test& test) {
  const std::size_t most = meter.plan().sizes.back() * static_cast<std::size_t>(meter.size());
  MEMSPAN_TRY_ASSIGN(const Arrays arrays, make_arrays(meter, most, most), test.name);
  return measure(meter, test, 1, [&](std::size_t bytes) {
    return shmem_alltoallmem(SHMEM_TEAM_WORLD, arrays.to, arrays.from, bytes);
  });
}

Status run_collect(Meter& meter, const Test& test) {
  const std::size_t most = meter.plan().sizes.back();
  MEMSPAN_TRY_ASSIGN(const Arrays arrays,
                     make_arrays(meter, most * static_cast<std::size_t>(meter.size()), most),
                     test.name);
  const auto collect = test.name == "collect" ? shmem_collectmem : shmem_fcollectmem;
  return measure(meter, test, 1, [&](std::size_t bytes) {
    return collect(SHMEM_TEAM_WORLD, arrays.to, arrays.from, bytes);
  });
}

}  // namespace memspan::perf
