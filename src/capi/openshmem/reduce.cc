// SPDX-License-Identifier: Apache-2.0
// Team reductions and scans.
#include "capi/access.h"
#include "capi/openshmem/handles.h"
#include "capi/openshmem/twin.h"
#include "pgas/collective/collective.h"
#include "pgas/collective/operators.h"

namespace memspan::capi {
namespace {

Team& team_for(const char* call, shmem_team_t handle, void* dest, const void* source,
               std::size_t count, const pgas::Reduction& reduction) {
  Team& team = team_of(call, handle);
  std::size_t bytes = bytes_of(count, reduction.element_bytes);
  require_symmetric(call, "dest", dest, bytes);
  require_symmetric(call, "source", source, bytes);
  return team;
}

int reduce(const char* call, shmem_team_t handle, void* dest, const void* source, std::size_t count,
           const pgas::Reduction& reduction) {
  Team& team = team_for(call, handle, dest, source, count, reduction);
  return outcome(call, pgas::reduce(team, call, dest, source, count, reduction));
}

int scan(const char* call, pgas::ScanKind kind, shmem_team_t handle, void* dest, const void* source,
         std::size_t count, const pgas::Reduction& reduction) {
  Team& team = team_for(call, handle, dest, source, count, reduction);
  return outcome(call, pgas::scan(team, call, kind, dest, source, count, reduction));
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan::capi;
namespace pgas = memspan::pgas;

#define MEMSPAN_REDUCE(function, type, operation)                                      \
  MEMSPAN_TWIN(int, function,                                                          \
               (shmem_team_t team, type * dest, const type* source, size_t nreduce)) { \
    return reduce("shmem_" #function, team, dest, source, nreduce,                     \
                  pgas::kReduction<type, pgas::operation>);                            \
  }

#define MEMSPAN_BITWISE(name, type)            \
  MEMSPAN_REDUCE(name##_and_reduce, type, And) \
  MEMSPAN_REDUCE(name##_or_reduce, type, Or)   \
  MEMSPAN_REDUCE(name##_xor_reduce, type, Xor)
MEMSPAN_BITWISE_REDUCE_TYPES(MEMSPAN_BITWISE)

#define MEMSPAN_ORDERED(name, type)            \
  MEMSPAN_REDUCE(name##_max_reduce, type, Max) \
  MEMSPAN_REDUCE(name##_min_reduce, type, Min)
MEMSPAN_RMA_TYPES(MEMSPAN_ORDERED)

#define MEMSPAN_ARITHMETIC(name, type)         \
  MEMSPAN_REDUCE(name##_sum_reduce, type, Sum) \
  MEMSPAN_REDUCE(name##_prod_reduce, type, Prod)
MEMSPAN_ARITHMETIC_REDUCE_TYPES(MEMSPAN_ARITHMETIC)

#define MEMSPAN_SCAN(function, type, kind)                                            \
  MEMSPAN_TWIN(int, function,                                                         \
               (shmem_team_t team, type * dest, const type* source, size_t nelems)) { \
    return scan("shmem_" #function, pgas::ScanKind::kind, team, dest, source, nelems, \
                pgas::kReduction<type, pgas::Sum>);                                   \
  }
#define MEMSPAN_SCANS(name, type)                   \
  MEMSPAN_SCAN(name##_sum_inscan, type, kInclusive) \
  MEMSPAN_SCAN(name##_sum_exscan, type, kExclusive)
MEMSPAN_ARITHMETIC_REDUCE_TYPES(MEMSPAN_SCANS)
