// SPDX-License-Identifier: Apache-2.0
// Share Memory: the calls of a space: collectives, and what members agree on.
#include <fmt/format.h>

#include <cstring>
#include <string>
#include <string_view>

#include "capi/smem/shm.h"

namespace memspan::capi {
namespace {

constexpr std::uint32_t kMostSent = 65536;
constexpr std::size_t kMostKey = 63;

// ---- collectives

// A member's part begins with a letter for its call, so that different calls notice each other.
constexpr char kBarrier = 'B';
constexpr char kAllgather = 'G';

struct AllgatherBuffers {
  const char* sent;
  std::uint32_t bytes;
  char* received;
  std::uint32_t room;
};

Status check_buffers(const AllgatherBuffers& buffers, std::uint32_t ranks) {
  if (buffers.sent == nullptr) return invalid("invalid param, sendBuf is NULL");
  if (buffers.received == nullptr) return invalid("invalid param, recvBuf is NULL");
  if (buffers.bytes == 0 || buffers.bytes > kMostSent)
    return invalid(
        fmt::format("Invalid sendSize, sendSize must be 1~{}, not {}", kMostSent, buffers.bytes));
  const std::uint64_t needed = std::uint64_t{buffers.bytes} * ranks;
  if (buffers.room != needed)
    return invalid(fmt::format("Invalid recvSize, {} ranks send {} bytes each, which is {}, not {}",
                               ranks, buffers.bytes, needed, buffers.room));
  return Status::ok();
}

Status check_key(const char* key) {
  if (key == nullptr) return invalid("invalid param, key is NULL");
  const std::size_t length = std::strlen(key);
  if (length == 0) return invalid("invalid param, key is empty");
  if (length > kMostKey)
    return invalid(
        fmt::format("key too long:{}, allowed are 1 to {} characters", length, kMostKey));
  return Status::ok();
}

std::int32_t collective_failure(const char* call, std::string_view where, const Status& status) {
  if (status.code() != Code::kTimeout) return smem_result(call, status);
  return smem_failure(
      call, SMEM_TIMEOUT,
      fmt::format("store get key: {} failed, result:timeout: {}", where, status.message()));
}

// Waits for all members by `all_gather(mine)`; all of them must be in a barrier.
template <typename AllGather>
std::int32_t barrier(const char* call, std::string_view where, AllGather all_gather) {
  const auto parts = all_gather(std::string(1, kBarrier));
  if (!parts.is_ok()) return collective_failure(call, where, parts.status());
  for (std::size_t rank = 0; rank < parts->size(); ++rank)
    if ((*parts)[rank] != std::string(1, kBarrier))
      return smem_failure(call, SMEM_INVALID_PARAM,
                          fmt::format("rank {} came to an allgather, not to a barrier", rank));
  return SMEM_OK;
}

template <typename AllGather>
std::int32_t allgather(const char* call, std::string_view where, const AllgatherBuffers& buffers,
                       AllGather all_gather) {
  const auto parts = all_gather(std::string(1, kAllgather).append(buffers.sent, buffers.bytes));
  if (!parts.is_ok()) return collective_failure(call, where, parts.status());
  for (std::size_t rank = 0; rank < parts->size(); ++rank) {
    const std::string& part = (*parts)[rank];
    if (part.empty() || part[0] != kAllgather)
      return smem_failure(call, SMEM_INVALID_PARAM,
                          fmt::format("rank {} came to a barrier, not to an allgather", rank));
    if (part.size() - 1 != buffers.bytes)
      return smem_failure(call, SMEM_INVALID_PARAM,
                          fmt::format("Invalid sendSize, rank {} sent {} bytes, this one {}", rank,
                                      part.size() - 1, buffers.bytes));
  }
  char* to = buffers.received;
  for (const std::string& part : *parts) {
    std::memcpy(to, part.data() + 1, buffers.bytes);
    to += buffers.bytes;
  }
  return SMEM_OK;
}

auto all_of(SharedSpace& shared) {
  return [&shared](const std::string& mine) {
    return shared.space->all_gather(mine, Deadline::after(shared.limit));
  };
}

auto some_of(SharedSpace& shared, const char* key, std::uint32_t size, std::uint32_t rank) {
  return [&shared, key, size, rank](const std::string& mine) {
    return shared.space->all_gather_some(key, rank, size, mine, Deadline::after(shared.limit));
  };
}

Status check_subgroup(const SharedSpace& shared, const char* key, std::uint32_t size,
                      std::uint32_t rank) {
  MEMSPAN_PASS(check_key(key));
  return check_ranks(size, rank, shared.space->ranks());
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int32_t smem_shm_set_extra_context(smem_shm_t handle, const void* context,
                                                  uint32_t size) {
  constexpr const char* kCall = "smem_shm_set_extra_context";
  return with_space(kCall, handle, [&](SharedSpace& shared) {
    if (context == nullptr)
      return smem_failure(kCall, SMEM_INVALID_PARAM, "invalid param, context is NULL");
    if (size == 0 || size > kMostContextBytes)
      return smem_failure(
          kCall, SMEM_INVALID_PARAM,
          fmt::format("invalid param, size must be between 1~{}, not {}", kMostContextBytes, size));
    shared.space->set_context({static_cast<const std::byte*>(context), size});
    return SMEM_OK;
  });
}

MEMSPAN_EXPORT int32_t smem_shm_get_extra_context(smem_shm_t handle, void* context,
                                                  uint32_t capacity, uint32_t* size) {
  constexpr const char* kCall = "smem_shm_get_extra_context";
  return with_space(kCall, handle, [&](SharedSpace& shared) {
    if (size == nullptr)
      return smem_failure(kCall, SMEM_INVALID_PARAM, "invalid param, size is NULL");
    if (context == nullptr && capacity != 0)
      return smem_failure(kCall, SMEM_INVALID_PARAM, "invalid param, context is NULL");
    *size = static_cast<std::uint32_t>(
        shared.space->read_context({static_cast<std::byte*>(context), capacity}));
    return SMEM_OK;
  });
}

MEMSPAN_EXPORT uint32_t smem_shm_get_global_rank(smem_shm_t handle) {
  std::uint32_t rank = UINT32_MAX;
  with_space(__func__, handle, [&](SharedSpace& shared) {
    rank = shared.space->rank();
    return SMEM_OK;
  });
  return rank;
}

MEMSPAN_EXPORT uint32_t smem_shm_get_global_rank_size(smem_shm_t handle) {
  std::uint32_t ranks = UINT32_MAX;
  with_space(__func__, handle, [&](SharedSpace& shared) {
    ranks = shared.space->ranks();
    return SMEM_OK;
  });
  return ranks;
}

MEMSPAN_EXPORT int32_t smem_shm_control_barrier(smem_shm_t handle) {
  constexpr const char* kCall = "smem_shm_control_barrier";
  return with_space(kCall, handle, [&](SharedSpace& shared) {
    return barrier(kCall, "barrier of all", all_of(shared));
  });
}

MEMSPAN_EXPORT int32_t smem_shm_control_allgather(smem_shm_t handle, const char* sendBuf,
                                                  uint32_t sendSize, char* recvBuf,
                                                  uint32_t recvSize) {
  constexpr const char* kCall = "smem_shm_control_allgather";
  return with_space(kCall, handle, [&](SharedSpace& shared) {
    const AllgatherBuffers buffers{sendBuf, sendSize, recvBuf, recvSize};
    const Status status = check_buffers(buffers, shared.space->ranks());
    if (!status.is_ok()) return smem_result(kCall, status);
    return allgather(kCall, "allgather of all", buffers, all_of(shared));
  });
}

MEMSPAN_EXPORT int32_t smem_shm_subgroup_barrier(smem_shm_t handle, const char* key,
                                                 uint32_t rankSize, uint32_t rankId) {
  constexpr const char* kCall = "smem_shm_subgroup_barrier";
  return with_space(kCall, handle, [&](SharedSpace& shared) {
    const Status status = check_subgroup(shared, key, rankSize, rankId);
    if (!status.is_ok()) return smem_result(kCall, status);
    return barrier(kCall, key, some_of(shared, key, rankSize, rankId));
  });
}

MEMSPAN_EXPORT int32_t smem_shm_subgroup_allgather(smem_shm_t handle, const char* key,
                                                   uint32_t rankSize, uint32_t rankId,
                                                   const char* sendBuf, uint32_t sendSize,
                                                   char* recvBuf, uint32_t recvSize) {
  constexpr const char* kCall = "smem_shm_subgroup_allgather";
  return with_space(kCall, handle, [&](SharedSpace& shared) {
    Status status = check_subgroup(shared, key, rankSize, rankId);
    const AllgatherBuffers buffers{sendBuf, sendSize, recvBuf, recvSize};
    if (status.is_ok()) status = check_buffers(buffers, rankSize);
    if (!status.is_ok()) return smem_result(kCall, status);
    return allgather(kCall, key, buffers, some_of(shared, key, rankSize, rankId));
  });
}

MEMSPAN_EXPORT int32_t smem_shm_topology_can_reach(smem_shm_t handle, uint32_t remoteRank,
                                                   uint32_t* reachInfo) {
  constexpr const char* kCall = "smem_shm_topology_can_reach";
  return with_space(kCall, handle, [&](SharedSpace& shared) {
    const std::uint32_t ranks = shared.space->ranks();
    if (remoteRank >= ranks)
      return smem_failure(kCall, SMEM_INVALID_PARAM,
                          fmt::format("invalid param, remoteRank is {}, allowed are 0 to {}",
                                      remoteRank, ranks - 1));
    if (reachInfo == nullptr)
      return smem_failure(kCall, SMEM_INVALID_PARAM, "invalid param, reachInfo is NULL");
    *reachInfo = shared.space->reaches(remoteRank) ? SMEMS_DATA_OP_MTE | SMEMS_DATA_OP_SDMA : 0;
    return SMEM_OK;
  });
}

MEMSPAN_EXPORT int32_t smem_shm_atomic_alloc_value(smem_shm_t handle, uint32_t limit,
                                                   uint32_t* retVal) {
  constexpr const char* kCall = "smem_shm_atomic_alloc_value";
  return with_space(kCall, handle, [&](SharedSpace& shared) {
    if (limit == 0) return smem_failure(kCall, SMEM_INVALID_PARAM, "invalid param, limit is 0");
    if (limit > SMEM_SHM_ATOMIC_NUM_LIMIT)
      return smem_failure(kCall, SMEM_INVALID_PARAM,
                          fmt::format("invalid param, limit is too large: {}, allowed are 1 to {}",
                                      limit, SMEM_SHM_ATOMIC_NUM_LIMIT));
    if (retVal == nullptr)
      return smem_failure(kCall, SMEM_INVALID_PARAM, "invalid param, retVal is NULL");
    const auto number = shared.space->numbers().take(limit, Deadline::after(shared.limit));
    if (number.code() == Code::kUnavailable)
      return smem_failure(kCall, SMEM_NO_RESOURCES, number.status().message());
    if (!number.is_ok()) return smem_result(kCall, number.status());
    *retVal = *number;
    return SMEM_OK;
  });
}

MEMSPAN_EXPORT int32_t smem_shm_atomic_release_value(smem_shm_t handle, int32_t value) {
  constexpr const char* kCall = "smem_shm_atomic_release_value";
  return with_space(kCall, handle, [&](SharedSpace& shared) {
    return smem_result(kCall, shared.space->numbers().give_back(static_cast<std::uint32_t>(value),
                                                                Deadline::after(shared.limit)));
  });
}

MEMSPAN_EXPORT int32_t smem_shm_register_exit(smem_shm_t handle, void (*exit)(int)) {
  constexpr const char* kCall = "smem_shm_register_exit";
  return with_space(kCall, handle, [&](SharedSpace& shared) {
    if (exit == nullptr)
      return smem_failure(kCall, SMEM_INVALID_PARAM, "invalid param, exit is NULL");
    const Status status = shared.space->exit().listen(exit, Deadline::after(shared.limit));
    if (status.code() == Code::kUnavailable)
      return smem_failure(kCall, SMEM_REPEAT_INVOKE, status.message());
    return smem_result(kCall, status);
  });
}

MEMSPAN_EXPORT void smem_shm_global_exit(smem_shm_t handle, int status) {
  with_space(__func__, handle, [&](SharedSpace& shared) {
    return smem_result("smem_shm_global_exit",
                       shared.space->exit().announce(status, Deadline::after(shared.limit)));
  });
}
