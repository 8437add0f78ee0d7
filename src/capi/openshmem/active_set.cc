// SPDX-License-Identifier: Apache-2.0
// The collectives of active sets (deprecated since 1.5, still in use): the team behind the set does
// the work. pSync is only needed until that team is made; pWrk is not needed.
#include <cstdint>

#include "capi/access.h"
#include "capi/openshmem/twin.h"
#include "pgas/collective/collective.h"
#include "pgas/collective/operators.h"

namespace memspan::capi {
namespace {

struct ActiveSet {
  int start;
  int log_stride;
  int size;
  long* sync;
};

// Null when a death was survived.
Team* team_of(const char* call, const ActiveSet& set) {
  require_started(call);
  reach_word(call, "pSync", set.sync, 0);
  if (set.log_stride < 0 || set.log_stride > 30)
    end_for_bad_number(call, "logPE_stride", set.log_stride, 0, 30);
  const auto team = process_state.active_sets->find_or_make(
      call, TeamShape{set.start, 1 << set.log_stride, set.size}, set.sync);
  return require(call, team.status()) ? *team : nullptr;
}

std::size_t members(const ActiveSet& set) {
  return set.size < 0 ? 0 : static_cast<std::size_t>(set.size);
}

struct Buffers {
  void* dest;
  std::size_t dest_bytes;
  const void* source;
  std::size_t source_bytes;
};

// The team of the set once both buffers are known to be symmetric.
Team* team_for(const char* call, const ActiveSet& set, const Buffers& buffers) {
  require_started(call);
  require_symmetric(call, "dest", buffers.dest, buffers.dest_bytes);
  require_symmetric(call, "source", buffers.source, buffers.source_bytes);
  return team_of(call, set);
}

void barrier(const char* call, const ActiveSet& set) {
  pshmem_quiet();
  if (Team* team = team_of(call, set)) require(call, pgas::barrier(*team, call));
}

void sync(const char* call, const ActiveSet& set) {
  if (Team* team = team_of(call, set)) require(call, pgas::sync(*team, call));
}

void broadcast(const char* call, const ActiveSet& set, void* dest, const void* source,
               std::size_t bytes, int root) {
  Team* team = team_for(call, set, {dest, bytes, source, bytes});
  if (team == nullptr) return;
  if (root < 0 || root >= team->size())
    end_for_bad_number(call, "PE_root", root, 0, team->size() - 1);
  require(call, pgas::broadcast(*team, call, dest, source, bytes, root, pgas::RootsDest::kLeft));
}

void collect(const char* call, const ActiveSet& set, void* dest, const void* source,
             std::size_t bytes) {
  if (Team* team = team_for(call, set, {dest, bytes, source, bytes}))
    require(call, pgas::collect(*team, call, dest, source, bytes));
}

void fcollect(const char* call, const ActiveSet& set, void* dest, const void* source,
              std::size_t bytes) {
  if (Team* team = team_for(call, set, {dest, bytes_of(bytes, members(set)), source, bytes}))
    require(call, pgas::fcollect(*team, call, dest, source, bytes));
}

void alltoall(const char* call, const ActiveSet& set, void* dest, const void* source,
              std::size_t bytes) {
  const std::size_t all = bytes_of(bytes, members(set));
  if (Team* team = team_for(call, set, {dest, all, source, all}))
    require(call, pgas::alltoall(*team, call, dest, source, bytes));
}

void alltoalls(const char* call, const ActiveSet& set, void* dest, const void* source,
               std::ptrdiff_t dest_stride, std::ptrdiff_t source_stride, std::size_t count,
               std::size_t size) {
  const std::size_t elements = bytes_of(count, members(set));
  if (Team* team = team_for(call, set,
                            {dest, strided_bytes(call, "dst", elements, dest_stride, size), source,
                             strided_bytes(call, "sst", elements, source_stride, size)}))
    require(call,
            pgas::alltoalls(*team, call, dest, source, dest_stride, source_stride, count, size));
}

void reduce(const char* call, const ActiveSet& set, void* dest, const void* source, int count,
            const pgas::Reduction& reduction) {
  if (count < 0) end_for_bad_number(call, "nreduce", count, 0, INT32_MAX);
  const auto elements = static_cast<std::size_t>(count);
  const std::size_t bytes = bytes_of(elements, reduction.element_bytes);
  if (Team* team = team_for(call, set, {dest, bytes, source, bytes}))
    require(call, pgas::reduce(*team, call, dest, source, elements, reduction));
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan::capi;
namespace pgas = memspan::pgas;

#define MEMSPAN_SET (ActiveSet{PE_start, logPE_stride, PE_size, pSync})
#define MEMSPAN_SET_PARAMETERS int PE_start, int logPE_stride, int PE_size, long *pSync

MEMSPAN_TWIN(void, barrier, (MEMSPAN_SET_PARAMETERS)) {
  barrier("shmem_barrier", MEMSPAN_SET);
}
MEMSPAN_TWIN(void, sync, (MEMSPAN_SET_PARAMETERS)) {
  sync("shmem_sync", MEMSPAN_SET);
}

#define MEMSPAN_ALIKE(operation, bits, size)                                                 \
  MEMSPAN_TWIN(void, operation##bits,                                                        \
               (void* dest, const void* source, size_t nelems, MEMSPAN_SET_PARAMETERS)) {    \
    operation("shmem_" #operation #bits, MEMSPAN_SET, dest, source, bytes_of(nelems, size)); \
  }
#define MEMSPAN_SIZED(bits, size)                                                             \
  MEMSPAN_TWIN(                                                                               \
      void, broadcast##bits,                                                                  \
      (void* dest, const void* source, size_t nelems, int PE_root, MEMSPAN_SET_PARAMETERS)) { \
    broadcast("shmem_broadcast" #bits, MEMSPAN_SET, dest, source, bytes_of(nelems, size),     \
              PE_root);                                                                       \
  }                                                                                           \
  MEMSPAN_ALIKE(collect, bits, size)                                                          \
  MEMSPAN_ALIKE(fcollect, bits, size)                                                         \
  MEMSPAN_ALIKE(alltoall, bits, size)                                                         \
  MEMSPAN_TWIN(void, alltoalls##bits,                                                         \
               (void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,  \
                MEMSPAN_SET_PARAMETERS)) {                                                    \
    alltoalls("shmem_alltoalls" #bits, MEMSPAN_SET, dest, source, dst, sst, nelems, size);    \
  }
MEMSPAN_ACTIVE_SET_SIZES(MEMSPAN_SIZED)  // NOLINT(readability-function-size): the standard's

#define MEMSPAN_TO_ALL(name, type, verb, operation)                                           \
  MEMSPAN_TWIN(void, name##_##verb##_to_all,                                                  \
               (type * dest, const type* source, int nreduce, int PE_start, int logPE_stride, \
                int PE_size, [[maybe_unused]] type* pWrk, long* pSync)) {                     \
    reduce("shmem_" #name "_" #verb "_to_all", MEMSPAN_SET, dest, source, nreduce,            \
           pgas::kReduction<type, pgas::operation>);                                          \
  }
#define MEMSPAN_BITWISE(name, type)    \
  MEMSPAN_TO_ALL(name, type, and, And) \
  MEMSPAN_TO_ALL(name, type, or, Or)   \
  MEMSPAN_TO_ALL(name, type, xor, Xor)
MEMSPAN_TO_ALL_BITWISE_TYPES(MEMSPAN_BITWISE)

#define MEMSPAN_ORDERED(name, type)    \
  MEMSPAN_TO_ALL(name, type, max, Max) \
  MEMSPAN_TO_ALL(name, type, min, Min)
MEMSPAN_TO_ALL_ORDERED_TYPES(MEMSPAN_ORDERED)

#define MEMSPAN_ARITHMETIC(name, type) \
  MEMSPAN_TO_ALL(name, type, sum, Sum) \
  MEMSPAN_TO_ALL(name, type, prod, Prod)
MEMSPAN_TO_ALL_ARITHMETIC_TYPES(MEMSPAN_ARITHMETIC)
