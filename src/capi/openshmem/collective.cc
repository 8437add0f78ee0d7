// SPDX-License-Identifier: Apache-2.0
// Team collectives that move data.
#include "pgas/collective/collective.h"

#include "capi/access.h"
#include "capi/openshmem/handles.h"
#include "capi/openshmem/twin.h"

namespace memspan::capi {
namespace {

struct Buffers {
  void* dest;
  const void* source;
};

std::size_t members(const Team& team) {
  return static_cast<std::size_t>(team.size());
}

int broadcast(const char* call, shmem_team_t handle, const Buffers& buffers, std::size_t count,
              std::size_t size, int root) {
  Team& team = team_of(call, handle);
  if (root < 0 || root >= team.size())
    end_for_bad_number(call, "PE_root", root, 0, team.size() - 1);
  std::size_t bytes = bytes_of(count, size);
  require_symmetric(call, "dest", buffers.dest, bytes);
  require_symmetric(call, "source", buffers.source, bytes);
  return outcome(call, pgas::broadcast(team, call, buffers.dest, buffers.source, bytes, root));
}

int fcollect(const char* call, shmem_team_t handle, const Buffers& buffers, std::size_t count,
             std::size_t size) {
  Team& team = team_of(call, handle);
  std::size_t bytes = bytes_of(count, size);
  require_symmetric(call, "dest", buffers.dest, bytes_of(bytes, members(team)));
  require_symmetric(call, "source", buffers.source, bytes);
  return outcome(call, pgas::fcollect(team, call, buffers.dest, buffers.source, bytes));
}

// How much comes from the others is only known in the call itself.
int collect(const char* call, shmem_team_t handle, const Buffers& buffers, std::size_t count,
            std::size_t size) {
  Team& team = team_of(call, handle);
  std::size_t bytes = bytes_of(count, size);
  require_symmetric(call, "dest", buffers.dest, bytes);
  require_symmetric(call, "source", buffers.source, bytes);
  return outcome(call, pgas::collect(team, call, buffers.dest, buffers.source, bytes));
}

int alltoall(const char* call, shmem_team_t handle, const Buffers& buffers, std::size_t count,
             std::size_t size) {
  Team& team = team_of(call, handle);
  std::size_t bytes = bytes_of(count, size);
  require_symmetric(call, "dest", buffers.dest, bytes_of(bytes, members(team)));
  require_symmetric(call, "source", buffers.source, bytes_of(bytes, members(team)));
  return outcome(call, pgas::alltoall(team, call, buffers.dest, buffers.source, bytes));
}

int alltoalls(const char* call, shmem_team_t handle, const Buffers& buffers,
              std::ptrdiff_t dest_stride, std::ptrdiff_t source_stride, std::size_t count,
              std::size_t size) {
  Team& team = team_of(call, handle);
  const std::size_t elements = bytes_of(count, members(team));
  require_symmetric(call, "dest", buffers.dest,
                    strided_bytes(call, "dst", elements, dest_stride, size));
  require_symmetric(call, "source", buffers.source,
                    strided_bytes(call, "sst", elements, source_stride, size));
  return outcome(call, pgas::alltoalls(team, call, buffers.dest, buffers.source, dest_stride,
                                       source_stride, count, size));
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan::capi;

#define MEMSPAN_ALIKE(operation, function, type, size)                                \
  MEMSPAN_TWIN(int, function,                                                         \
               (shmem_team_t team, type * dest, const type* source, size_t nelems)) { \
    return operation("shmem_" #function, team, Buffers{dest, source}, nelems, size);  \
  }
#define MEMSPAN_BROADCAST(function, type, size)                                                    \
  MEMSPAN_TWIN(int, function,                                                                      \
               (shmem_team_t team, type * dest, const type* source, size_t nelems, int PE_root)) { \
    return broadcast("shmem_" #function, team, Buffers{dest, source}, nelems, size, PE_root);      \
  }
#define MEMSPAN_ALLTOALLS(function, type, size)                                                   \
  MEMSPAN_TWIN(int, function,                                                                     \
               (shmem_team_t team, type * dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, \
                size_t nelems)) {                                                                 \
    return alltoalls("shmem_" #function, team, Buffers{dest, source}, dst, sst, nelems, size);    \
  }

#define MEMSPAN_TYPED(name, type)                              \
  MEMSPAN_BROADCAST(name##_broadcast, type, sizeof(type))      \
  MEMSPAN_ALIKE(collect, name##_collect, type, sizeof(type))   \
  MEMSPAN_ALIKE(fcollect, name##_fcollect, type, sizeof(type)) \
  MEMSPAN_ALIKE(alltoall, name##_alltoall, type, sizeof(type)) \
  MEMSPAN_ALLTOALLS(name##_alltoalls, type, sizeof(type))
MEMSPAN_RMA_TYPES(MEMSPAN_TYPED)

MEMSPAN_BROADCAST(broadcastmem, void, 1)
MEMSPAN_ALIKE(collect, collectmem, void, 1)
MEMSPAN_ALIKE(fcollect, fcollectmem, void, 1)
MEMSPAN_ALIKE(alltoall, alltoallmem, void, 1)
MEMSPAN_ALLTOALLS(alltoallsmem, void, 1)
