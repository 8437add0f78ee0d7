// SPDX-License-Identifier: Apache-2.0
// Collectives that move or combine data, of teams and of active sets.

#include "capi/access.h"
#include "capi/collective_calls.h"
#include "capi/openshmem/handles.h"
#include "capi/openshmem/profiling_alias.h"
#include "pgas/reduction/kernels.h"

namespace memspan::capi {
namespace {

// A collective by its function and what that wants besides the elements. Out of line: hundreds of
// names call it.
template <typename... More>
[[gnu::noinline]] int collective(const char* call, shmem_team_t team, const Elements& elements,
                                 Status (*function)(const Collective&, More...),
                                 std::type_identity_t<More>... more) try {
  return require(call, function({call, team_of(call, team), elements}, more...)) ? 0 : 1;
}
MEMSPAN_CATCH_IN(call, 1)

// ---- active sets

struct ActiveSet {
  int start;
  int log_stride;
  int size;
  long* sync;
};

// Null when a death was survived.
Team* set_team(const char* call, const ActiveSet& set) {
  require_started(call);
  require_host_word(call, "pSync", set.sync);
  if (set.log_stride < 0 || set.log_stride > 30)
    end_for_bad_number(call, "logPE_stride", set.log_stride, 0, 30);
  const auto team = process_state.local_teams->active_set(
      call, TeamShape{set.start, 1 << set.log_stride, set.size}, set.sync);
  return require(call, team.status()) ? *team : nullptr;
}

void set_barrier(const char* call, const ActiveSet& set) try {
  pshmem_quiet();
  if (Team* team = set_team(call, set)) require(call, capi::barrier(call, *team));
}
MEMSPAN_CATCH_AND_END(call)

void set_sync(const char* call, const ActiveSet& set) try {
  if (Team* team = set_team(call, set)) require(call, capi::sync(call, *team));
}
MEMSPAN_CATCH_AND_END(call)

// A collective by its function and what that wants besides the elements.
template <typename... More>
void set_collective(const char* call, const ActiveSet& set, const Elements& elements,
                    Status (*function)(const Collective&, More...),
                    std::type_identity_t<More>... more) try {
  if (Team* team = set_team(call, set)) require(call, function({call, *team, elements}, more...));
}
MEMSPAN_CATCH_AND_END(call)

void set_reduce(const char* call, const ActiveSet& set, void* dest, const void* source, int count,
                const pgas::ReductionKernel& kernel) {
  require_started(call);
  if (count < 0) end_for_bad_number(call, "nreduce", count, 0, INT32_MAX);
  set_collective(call, set, {dest, source, static_cast<std::size_t>(count), kernel.bytes},
                 capi::reduce, kernel);
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan::capi;
namespace pgas = memspan::pgas;

// `parameters` is what comes after the buffers.
#define MEMSPAN_COLLECTIVE_WITH(function, type, size, parameters, ...)                      \
  MEMSPAN_PROFILED(                                                                         \
      int, function,                                                                        \
      (shmem_team_t team, type * dest, const type* source, MEMSPAN_UNPACK parameters)) {    \
    return collective("shmem_" #function, team, {dest, source, nelems, size}, __VA_ARGS__); \
  }
#define MEMSPAN_COLLECTIVE(function, type, size, ...) \
  MEMSPAN_COLLECTIVE_WITH(function, type, size, (size_t nelems), __VA_ARGS__)
#define MEMSPAN_BROADCAST(function, type, size)                                                   \
  MEMSPAN_COLLECTIVE_WITH(function, type, size, (size_t nelems, int PE_root), broadcast, PE_root, \
                          pgas::RootsDest::kWritten)
#define MEMSPAN_ALLTOALLS(function, type, size)                                                \
  MEMSPAN_COLLECTIVE_WITH(function, type, size, (ptrdiff_t dst, ptrdiff_t sst, size_t nelems), \
                          alltoalls, dst, sst)

#define MEMSPAN_TEAM_TYPED(name, type)                              \
  MEMSPAN_BROADCAST(name##_broadcast, type, sizeof(type))           \
  MEMSPAN_COLLECTIVE(name##_collect, type, sizeof(type), collect)   \
  MEMSPAN_COLLECTIVE(name##_fcollect, type, sizeof(type), fcollect) \
  MEMSPAN_COLLECTIVE(name##_alltoall, type, sizeof(type), alltoall) \
  MEMSPAN_ALLTOALLS(name##_alltoalls, type, sizeof(type))
MEMSPAN_RMA_TYPES(MEMSPAN_TEAM_TYPED)

MEMSPAN_BROADCAST(broadcastmem, void, 1)
MEMSPAN_COLLECTIVE(collectmem, void, 1, collect)
MEMSPAN_COLLECTIVE(fcollectmem, void, 1, fcollect)
MEMSPAN_COLLECTIVE(alltoallmem, void, 1, alltoall)
MEMSPAN_ALLTOALLS(alltoallsmem, void, 1)

#define MEMSPAN_REDUCE(function, type, operation)          \
  MEMSPAN_COLLECTIVE(function, type, sizeof(type), reduce, \
                     (pgas::reduction_kernel<type, pgas::Operator::k##operation>()))

#define MEMSPAN_TEAM_BITWISE(name, type)       \
  MEMSPAN_REDUCE(name##_and_reduce, type, And) \
  MEMSPAN_REDUCE(name##_or_reduce, type, Or)   \
  MEMSPAN_REDUCE(name##_xor_reduce, type, Xor)
MEMSPAN_BITWISE_REDUCE_TYPES(MEMSPAN_TEAM_BITWISE)

#define MEMSPAN_TEAM_ORDERED(name, type)       \
  MEMSPAN_REDUCE(name##_max_reduce, type, Max) \
  MEMSPAN_REDUCE(name##_min_reduce, type, Min)
MEMSPAN_RMA_TYPES(MEMSPAN_TEAM_ORDERED)

#define MEMSPAN_TEAM_ARITHMETIC(name, type)    \
  MEMSPAN_REDUCE(name##_sum_reduce, type, Sum) \
  MEMSPAN_REDUCE(name##_prod_reduce, type, Product)
MEMSPAN_ARITHMETIC_REDUCE_TYPES(MEMSPAN_TEAM_ARITHMETIC)

#define MEMSPAN_SCAN(function, type, kind)                                     \
  MEMSPAN_COLLECTIVE(function, type, sizeof(type), scan, pgas::ScanKind::kind, \
                     (pgas::reduction_kernel<type, pgas::Operator::kSum>()))
#define MEMSPAN_SCANS(name, type)                   \
  MEMSPAN_SCAN(name##_sum_inscan, type, kInclusive) \
  MEMSPAN_SCAN(name##_sum_exscan, type, kExclusive)
MEMSPAN_ARITHMETIC_REDUCE_TYPES(MEMSPAN_SCANS)

// ---- the collectives of active sets (deprecated since 1.5, still in use): the team behind the set
// does the work. pSync is only needed until that team is made; pWrk is not needed.

#define MEMSPAN_SET (ActiveSet{PE_start, logPE_stride, PE_size, pSync})
#define MEMSPAN_SET_PARAMETERS int PE_start, int logPE_stride, int PE_size, long *pSync

MEMSPAN_PROFILED(void, barrier, (MEMSPAN_SET_PARAMETERS)) {
  set_barrier("shmem_barrier", MEMSPAN_SET);
}
MEMSPAN_PROFILED(void, sync, (MEMSPAN_SET_PARAMETERS)) {
  set_sync("shmem_sync", MEMSPAN_SET);
}

#define MEMSPAN_SET_CALL(function, size, parameters, ...)                                       \
  MEMSPAN_PROFILED(                                                                             \
      void, function,                                                                           \
      (void* dest, const void* source, MEMSPAN_UNPACK parameters, MEMSPAN_SET_PARAMETERS)) {    \
    set_collective("shmem_" #function, MEMSPAN_SET, {dest, source, nelems, size}, __VA_ARGS__); \
  }
#define MEMSPAN_SET_SIZED(bits, size)                                                       \
  MEMSPAN_SET_CALL(broadcast##bits, size, (size_t nelems, int PE_root), broadcast, PE_root, \
                   pgas::RootsDest::kLeft)                                                  \
  MEMSPAN_SET_CALL(collect##bits, size, (size_t nelems), collect)                           \
  MEMSPAN_SET_CALL(fcollect##bits, size, (size_t nelems), fcollect)                         \
  MEMSPAN_SET_CALL(alltoall##bits, size, (size_t nelems), alltoall)                         \
  MEMSPAN_SET_CALL(alltoalls##bits, size, (ptrdiff_t dst, ptrdiff_t sst, size_t nelems),    \
                   alltoalls, dst, sst)
MEMSPAN_ACTIVE_SET_SIZES(MEMSPAN_SET_SIZED)  // NOLINT(readability-function-size): the standard's

#define MEMSPAN_TO_ALL(name, type, verb, operation)                                               \
  MEMSPAN_PROFILED(void, name##_##verb##_to_all,                                                  \
                   (type * dest, const type* source, int nreduce, int PE_start, int logPE_stride, \
                    int PE_size, [[maybe_unused]] type* pWrk, long* pSync)) {                     \
    set_reduce("shmem_" #name "_" #verb "_to_all", MEMSPAN_SET, dest, source, nreduce,            \
               (pgas::reduction_kernel<type, pgas::Operator::k##operation>()));                   \
  }
#define MEMSPAN_SET_BITWISE(name, type) \
  MEMSPAN_TO_ALL(name, type, and, And)  \
  MEMSPAN_TO_ALL(name, type, or, Or)    \
  MEMSPAN_TO_ALL(name, type, xor, Xor)
MEMSPAN_TO_ALL_BITWISE_TYPES(MEMSPAN_SET_BITWISE)

#define MEMSPAN_SET_ORDERED(name, type) \
  MEMSPAN_TO_ALL(name, type, max, Max)  \
  MEMSPAN_TO_ALL(name, type, min, Min)
MEMSPAN_TO_ALL_ORDERED_TYPES(MEMSPAN_SET_ORDERED)

#define MEMSPAN_SET_ARITHMETIC(name, type) \
  MEMSPAN_TO_ALL(name, type, sum, Sum)     \
  MEMSPAN_TO_ALL(name, type, prod, Product)
MEMSPAN_TO_ALL_ARITHMETIC_TYPES(MEMSPAN_SET_ARITHMETIC)
