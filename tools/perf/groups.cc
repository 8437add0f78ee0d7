// SPDX-License-Identifier: Apache-2.0
// Collectives of ordinary memory (memspan/group.h), in a group of all PEs.
#include <fmt/format.h>
#include <memspan/group.h>
#include <memspan/memspan.h>
#include <shmem.h>

#include <cstring>

#include "perf/meter.h"

namespace memspan::perf {
namespace {

constexpr std::size_t kMostExchange = 4096;  // bytes of a member, in one exchange
constexpr uint32_t kTimeout = 60000;

// The exchange that a group is made by: a collective of OpenSHMEM.
struct Exchange {
  std::byte* mine;
  std::byte* all;
};

int exchange(void* user, const void* mine, std::size_t bytes, void* all) {
  const auto* memory = static_cast<const Exchange*>(user);
  if (bytes > kMostExchange) return 1;
  std::memcpy(memory->mine, mine, bytes);
  if (shmem_fcollectmem(SHMEM_TEAM_WORLD, memory->all, memory->mine, bytes) != 0) return 1;
  std::memcpy(all, memory->all, bytes * static_cast<std::size_t>(shmem_n_pes()));
  return 0;
}

Status failed(std::string_view what) {
  return {Code::kInternal, fmt::format("{}: {}", what, memspan_last_error())};
}

// Owns a group; the members leave together.
class Group : NotCopyable {
 public:
  explicit Group(memspan_group_t group) : group_(group) {}
  ~Group() {
    memspan_group_leave(group_);
    memspan_group_destroy(group_);
  }
  memspan_group_t get() const { return group_; }

 private:
  const memspan_group_t group_;
};

// The memory of one member: what it gives, and what it gets of each.
struct Memory {
  std::vector<std::byte> from;
  std::vector<std::byte> to;
  std::vector<void*> results;
  std::vector<const void*> values;
  std::vector<std::size_t> sizes;

  Memory(std::size_t bytes, std::size_t members)
      : from(bytes * members),
        to(bytes * members),
        results(members),
        values(members),
        sizes(members) {}
  // Member m's part is at m times `bytes`.
  void part(std::size_t bytes) {
    for (std::size_t m = 0; m < results.size(); ++m) {
      results[m] = to.data() + m * bytes;
      values[m] = from.data() + m * bytes;
      sizes[m] = bytes;
    }
  }
};

int32_t call(memspan_group_t group, std::string_view name, Memory& memory, std::size_t bytes) {
  const std::size_t floats = bytes / sizeof(float);
  if (name == "group-broadcast")
    return memspan_group_broadcast(group, memory.from.data(), bytes, 0);
  if (name == "group-all-reduce")
    return memspan_group_all_reduce(group, memory.to.data(), memory.from.data(), floats,
                                    MEMSPAN_TYPE_FLOAT32, MEMSPAN_OP_SUM);
  if (name == "group-all-gather")
    return memspan_group_all_gather(group, memory.results.data(), memory.from.data(), bytes);
  if (name == "group-reduce-scatter")
    return memspan_group_reduce_scatter(group, memory.to.data(), memory.values.data(), floats,
                                        MEMSPAN_TYPE_FLOAT32, MEMSPAN_OP_SUM);
  return memspan_group_all_to_all(group, memory.results.data(), memory.sizes.data(),
                                  memory.values.data(), memory.sizes.data());
}

}  // namespace

Status run_group(Meter& meter, const Test& test) {
  const auto members = static_cast<std::size_t>(meter.size());
  Exchange memory{};
  MEMSPAN_TRY_ASSIGN(memory.mine, meter.symmetric(kMostExchange), test.name);
  MEMSPAN_TRY_ASSIGN(memory.all, meter.symmetric(kMostExchange * members), test.name);
  memspan_group_t made = nullptr;
  if (memspan_group_create(meter.rank(), meter.size(), exchange, &memory, kTimeout, &made) !=
      SMEM_OK)
    return failed("making a group");
  const Group group(made);
  int32_t code = SMEM_OK;
  if (!test.has_sizes) {
    meter.measure(test, 0, Actors::kAll, 1, [&](std::size_t count) {
      for (std::size_t i = 0; i < count; ++i)
        if (const int32_t result = memspan_group_barrier(group.get()); result != SMEM_OK)
          code = result;
    });
    shmem_barrier_all();
    return code == SMEM_OK ? Status::ok() : failed(test.name);
  }
  Memory arrays(meter.plan().sizes.back(), members);
  for (const std::size_t bytes : meter.plan().sizes) {
    if (bytes < sizeof(float)) continue;
    arrays.part(bytes);
    meter.measure(test, bytes, Actors::kAll, 1, [&](std::size_t count) {
      for (std::size_t i = 0; i < count; ++i)
        if (const int32_t result = call(group.get(), test.name, arrays, bytes); result != SMEM_OK)
          code = result;
    });
  }
  shmem_barrier_all();
  return code == SMEM_OK ? Status::ok() : failed(test.name);
}

}  // namespace memspan::perf
