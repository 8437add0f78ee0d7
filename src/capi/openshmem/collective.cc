// SPDX-License-Identifier: Apache-2.0
// Team collectives that move or combine data.
#include <type_traits>

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
  return outcome(call, function({call, team_of(call, team), elements}, more...));
}
MEMSPAN_CATCH_IN(call, 1)

}  // namespace
}  // namespace memspan::capi

using namespace memspan::capi;
namespace pgas = memspan::pgas;

#define MEMSPAN_COLLECTIVE(function, type, size, operation, ...)                          \
  MEMSPAN_PROFILED(int, function,                                                         \
                   (shmem_team_t team, type * dest, const type* source, size_t nelems)) { \
    return collective("shmem_" #function, team, {dest, source, nelems, size},             \
                      operation __VA_OPT__(, ) __VA_ARGS__);                              \
  }
#define MEMSPAN_BROADCAST(function, type, size)                                                   \
  MEMSPAN_PROFILED(                                                                               \
      int, function,                                                                              \
      (shmem_team_t team, type * dest, const type* source, size_t nelems, int PE_root)) {         \
    return collective("shmem_" #function, team, {dest, source, nelems, size}, broadcast, PE_root, \
                      pgas::RootsDest::kWritten);                                                 \
  }
#define MEMSPAN_ALLTOALLS(function, type, size)                                               \
  MEMSPAN_PROFILED(int, function,                                                             \
                   (shmem_team_t team, type * dest, const type* source, ptrdiff_t dst,        \
                    ptrdiff_t sst, size_t nelems)) {                                          \
    return collective("shmem_" #function, team, {dest, source, nelems, size}, alltoalls, dst, \
                      sst);                                                                   \
  }

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
