// SPDX-License-Identifier: Apache-2.0
// Share Memory: becoming a member, spaces, and their calls: collectives, and what members agree on.
#include <memspan/space_calls.h>
#include <smem/host/smem_shm.h>

#include "capi/smem/rank_binding.h"
#include "device/choice.h"
#include "fabric/space.h"

namespace memspan::capi {
namespace {

// Spaces have the ids 0 to this.
constexpr std::uint32_t kMostSpaceId = 63;
constexpr std::uint32_t kOperations = SMEMS_DATA_OP_MTE | SMEMS_DATA_OP_SDMA | SMEMS_DATA_OP_RDMA;

// The object behind a handle.
struct SharedSpace : RankedObject {
  std::unique_ptr<Space> space;
  void end_waits() const { space->close(); }
};

struct Spaces : RankedObjects<SharedSpace, HandleKind::kSpace, kMostSpaceId + 1> {
  Spaces() : RankedObjects("shm", "SHM") {}
};
constexpr auto& spaces = fork_aware_singleton<Spaces>;

// ---- becoming a member

Status check_config(std::uint32_t ranks, std::uint32_t rank, const smem_shm_config_t* config) {
  MEMSPAN_PASS(check_world_size(ranks));
  if (rank >= ranks)
    return invalid("invalid param, rankId is {}, allowed are 0 to {}", rank, ranks - 1);
  if (config == nullptr) return invalid("config is null");
  if (config->shmInitTimeout == 0) return invalid("config is invalid: shmInitTimeout is zero");
  if (config->shmCreateTimeout == 0) return invalid("config is invalid: shmCreateTimeout is zero");
  if (config->controlOperationTimeout == 0)
    return invalid("config is invalid: controlOperationTimeout is zero");
  return Status::ok();
}

Result<RankMembership> become_member(const char* url, std::uint32_t ranks, std::uint32_t rank,
                                     const smem_shm_config_t& config) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(config.shmInitTimeout));
  const bool hosts = config.startConfigStoreServer && rank == 0;
  MEMSPAN_PASS_ASSIGN(auto member, member_at(url, hosts ? Hosting::kWhenPossible : Hosting::kNever,
                                             AfterLoss::kEnds, std::nullopt, deadline));
  return spaces().claim(std::move(member), static_cast<int>(rank), ranks,
                        {std::chrono::seconds(config.shmCreateTimeout),
                         std::chrono::seconds(config.controlOperationTimeout)},
                        deadline);
}

// ---- spaces

// kInvalidArgument when no `most` ranks or fewer may be numbered so.
Status check_ranks(std::uint32_t size, std::uint32_t rank, std::uint32_t most) {
  if (size == 0 || size > most)
    return invalid("rankSize is invalid! input:{} option:{}", size, most);
  if (rank >= size) return invalid("rankId is invalid! rank:{} size:{}", rank, size);
  return Status::ok();
}

struct SpaceRequest {
  std::uint32_t id;
  std::uint32_t ranks;
  std::uint32_t rank;
  std::uint64_t bytes;
  std::uint32_t operations;
};

Status check_space(const SpaceRequest& request, std::uint32_t world, void* const* gva) {
  if (request.id > kMostSpaceId)
    return invalid("invalid id, id range is: [0, {}], not {}", kMostSpaceId, request.id);
  MEMSPAN_PASS(check_ranks(request.ranks, request.rank, world));
  if (gva == nullptr) return null_argument("gva");
  if (request.bytes > kMostSpaceBytes)
    return invalid("symmetric size exceeded: {}, allowed are up to {} bytes", request.bytes,
                   kMostSpaceBytes);
  if ((request.operations & ~kOperations) != 0)
    return invalid("invalid param, dataOpType is {:#x}, allowed are SMEMS_DATA_OP_...",
                   request.operations);
  return Status::ok();
}

Result<void*> make_space(const RankMembership& membership, const SpaceRequest& request,
                         void** gva) {
  MEMSPAN_TRY_ASSIGN(Device* const device, chosen_device(), "choosing the device of the space");
  auto shared = std::make_unique<SharedSpace>();
  MEMSPAN_PASS_ASSIGN(shared->space, Space::create(membership.member,
                                                   {.name = fmt::format("shm/{}", request.id),
                                                    .rank = request.rank,
                                                    .ranks = request.ranks,
                                                    .bytes = request.bytes,
                                                    .device = device},
                                                   Deadline::after(membership.limits.create)));
  shared->id = request.id;
  shared->limit = membership.limits.operation;
  *gva = shared->space->base();
  return spaces().add(std::move(shared));  // there is a slot for every id
}

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
  constexpr std::uint32_t kMostSent = 65536;
  if (buffers.sent == nullptr) return null_argument("sendBuf");
  if (buffers.received == nullptr) return null_argument("recvBuf");
  if (buffers.bytes == 0 || buffers.bytes > kMostSent)
    return invalid("Invalid sendSize, sendSize must be 1~{}, not {}", kMostSent, buffers.bytes);
  const std::uint64_t needed = std::uint64_t{buffers.bytes} * ranks;
  if (buffers.room != needed)
    return invalid("Invalid recvSize, {} ranks send {} bytes each, which is {}, not {}", ranks,
                   buffers.bytes, needed, buffers.room);
  return Status::ok();
}

// Some of the members, which agree on a key and number themselves.
struct Subgroup {
  const char* key;
  std::uint32_t size;
  std::uint32_t rank;
};

Status check_subgroup(const SharedSpace& shared, const Subgroup& group) {
  constexpr std::size_t kMostKey = 63;
  if (group.key == nullptr) return null_argument("key");
  const std::size_t length = std::strlen(group.key);
  if (length == 0) return invalid("invalid param, key is empty");
  if (length > kMostKey)
    return invalid("key too long:{}, allowed are 1 to {} characters", length, kMostKey);
  return check_ranks(group.size, group.rank, shared.space->ranks());
}

// Waits for all members of the group, or of the space if that is null. Returns their parts, all of
// which are for the call `kind`.
Result<std::vector<std::string>> gather(SharedSpace& shared, const Subgroup* group, char kind,
                                        std::string_view sent) {
  const bool is_barrier = kind == kBarrier;
  const std::string mine = std::string(1, kind).append(sent);
  auto parts = group == nullptr
                   ? shared.space->all_gather(mine, shared.deadline())
                   : shared.space->all_gather_some(group->key, group->rank, group->size, mine,
                                                   shared.deadline());
  if (parts.code() == Code::kTimeout)
    return Status(Code::kTimeout, fmt::format("store get key: {} failed, result:timeout: {}",
                                              group != nullptr ? group->key
                                              : is_barrier     ? "barrier of all"
                                                               : "allgather of all",
                                              parts.status().message()));
  if (!parts.is_ok()) return parts;
  for (std::size_t rank = 0; rank < parts->size(); ++rank)
    if (const std::string& part = (*parts)[rank]; part.empty() || part[0] != kind)
      return invalid(is_barrier
                         ? fmt::format("rank {} came to an allgather, not to a barrier", rank)
                         : fmt::format("rank {} came to a barrier, not to an allgather", rank));
  return parts;
}

Status allgather(SharedSpace& shared, const Subgroup* group, const AllgatherBuffers& buffers) {
  MEMSPAN_PASS(check_buffers(buffers, group == nullptr ? shared.space->ranks() : group->size));
  MEMSPAN_PASS_ASSIGN(const auto parts,
                      gather(shared, group, kAllgather, {buffers.sent, buffers.bytes}));
  for (std::size_t rank = 0; rank < parts.size(); ++rank)
    if (parts[rank].size() - 1 != buffers.bytes)
      return invalid("Invalid sendSize, rank {} sent {} bytes, this one {}", rank,
                     parts[rank].size() - 1, buffers.bytes);
  char* to = buffers.received;
  for (const std::string& part : parts) to += part.copy(to, buffers.bytes, 1);
  return Status::ok();
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int32_t smem_shm_config_init(smem_shm_config_t* config) try {
  if (config == nullptr) return smem_failure(__func__, SMEM_INVALID_PARAM, "config is null");
  constexpr std::uint32_t kSeconds = 120;
  *config = {};
  config->shmInitTimeout = config->shmCreateTimeout = config->controlOperationTimeout = kSeconds;
  config->startConfigStoreServer = true;
  return SMEM_OK;
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t smem_shm_init(const char* configStoreIpPort, uint32_t worldSize,
                                     uint32_t rankId, [[maybe_unused]] uint16_t deviceId,
                                     smem_shm_config_t* config) try {
  return spaces().init(
      __func__, [&] { return check_config(worldSize, rankId, config); },
      [&] { return become_member(configStoreIpPort, worldSize, rankId, *config); });
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT void smem_shm_uninit([[maybe_unused]] uint32_t flags) try { spaces().destroy_all(); }
MEMSPAN_CATCH()

MEMSPAN_EXPORT uint32_t smem_shm_query_support_data_operation(void) {
  return SMEMS_DATA_OP_MTE;
}

MEMSPAN_EXPORT smem_shm_t smem_shm_create(uint32_t id, uint32_t rankSize, uint32_t rankId,
                                          uint64_t symmetricSize, smem_shm_data_op_type dataOpType,
                                          [[maybe_unused]] uint32_t flags, void** gva) try {
  const SpaceRequest request{id, rankSize, rankId, symmetricSize, number_of(dataOpType)};
  return spaces().create(
      __func__, id, [&](std::uint32_t most_ranks) { return check_space(request, most_ranks, gva); },
      SMEM_DUPLICATED,
      [&](const RankMembership& membership) { return make_space(membership, request, gva); });
}
MEMSPAN_CATCH(nullptr)

MEMSPAN_EXPORT int32_t smem_shm_destroy(smem_shm_t handle, [[maybe_unused]] uint32_t flags) try {
  return spaces().destroy(handle) ? SMEM_OK : spaces().no_such(__func__, handle);
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t smem_shm_set_extra_context(smem_shm_t handle, const void* context,
                                                  uint32_t size) {
  return with<Spaces>(__func__, handle, [&](SharedSpace& shared) {
    if (context == nullptr) return null_argument("context");
    if (size == 0 || size > kMostContextBytes)
      return invalid("invalid param, size must be between 1~{}, not {}", kMostContextBytes, size);
    shared.space->set_context({static_cast<const std::byte*>(context), size});
    return Status::ok();
  });
}

MEMSPAN_EXPORT int32_t smem_shm_get_extra_context(smem_shm_t handle, void* context,
                                                  uint32_t capacity, uint32_t* size) {
  return with<Spaces>(__func__, handle, [&](SharedSpace& shared) {
    if (size == nullptr) return null_argument("size");
    if (context == nullptr && capacity != 0) return null_argument("context");
    *size = static_cast<std::uint32_t>(
        shared.space->read_context({static_cast<std::byte*>(context), capacity}));
    return Status::ok();
  });
}

MEMSPAN_EXPORT uint32_t smem_shm_get_global_rank(smem_shm_t handle) {
  return value_with<Spaces>(__func__, handle, UINT32_MAX, [](SharedSpace& shared) {
    return Result<std::uint32_t>(shared.space->rank());
  });
}

MEMSPAN_EXPORT uint32_t smem_shm_get_global_rank_size(smem_shm_t handle) {
  return value_with<Spaces>(__func__, handle, UINT32_MAX, [](SharedSpace& shared) {
    return Result<std::uint32_t>(shared.space->ranks());
  });
}

MEMSPAN_EXPORT int32_t smem_shm_control_barrier(smem_shm_t handle) {
  return with<Spaces>(__func__, handle, [&](SharedSpace& shared) {
    return gather(shared, nullptr, kBarrier, "").status();
  });
}

MEMSPAN_EXPORT int32_t smem_shm_control_allgather(smem_shm_t handle, const char* sendBuf,
                                                  uint32_t sendSize, char* recvBuf,
                                                  uint32_t recvSize) {
  return with<Spaces>(__func__, handle, [&](SharedSpace& shared) {
    return allgather(shared, nullptr, {sendBuf, sendSize, recvBuf, recvSize});
  });
}

MEMSPAN_EXPORT int32_t smem_shm_subgroup_barrier(smem_shm_t handle, const char* key,
                                                 uint32_t rankSize, uint32_t rankId) {
  return with<Spaces>(__func__, handle, [&](SharedSpace& shared) {
    const Subgroup group{key, rankSize, rankId};
    MEMSPAN_PASS(check_subgroup(shared, group));
    return gather(shared, &group, kBarrier, "").status();
  });
}

MEMSPAN_EXPORT int32_t smem_shm_subgroup_allgather(smem_shm_t handle, const char* key,
                                                   uint32_t rankSize, uint32_t rankId,
                                                   const char* sendBuf, uint32_t sendSize,
                                                   char* recvBuf, uint32_t recvSize) {
  return with<Spaces>(__func__, handle, [&](SharedSpace& shared) {
    const Subgroup group{key, rankSize, rankId};
    MEMSPAN_PASS(check_subgroup(shared, group));
    return allgather(shared, &group, {sendBuf, sendSize, recvBuf, recvSize});
  });
}

MEMSPAN_EXPORT int32_t smem_shm_topology_can_reach(smem_shm_t handle, uint32_t remoteRank,
                                                   uint32_t* reachInfo) {
  return with<Spaces>(__func__, handle, [&](SharedSpace& shared) {
    const std::uint32_t ranks = shared.space->ranks();
    if (remoteRank >= ranks)
      return invalid("invalid param, remoteRank is {}, allowed are 0 to {}", remoteRank, ranks - 1);
    if (reachInfo == nullptr) return null_argument("reachInfo");
    *reachInfo = shared.space->reaches(remoteRank) ? SMEMS_DATA_OP_MTE | SMEMS_DATA_OP_SDMA : 0;
    return Status::ok();
  });
}

MEMSPAN_EXPORT int32_t smem_shm_atomic_alloc_value(smem_shm_t handle, uint32_t limit,
                                                   uint32_t* retVal) {
  return with<Spaces>(
      __func__, handle,
      [&](SharedSpace& shared) {
        if (limit == 0) return invalid("invalid param, limit is 0");
        if (limit > SMEM_SHM_ATOMIC_NUM_LIMIT)
          return invalid("invalid param, limit is too large: {}, allowed are 1 to {}", limit,
                         SMEM_SHM_ATOMIC_NUM_LIMIT);
        if (retVal == nullptr) return null_argument("retVal");
        MEMSPAN_PASS_ASSIGN(*retVal, shared.space->numbers().take(limit, shared.deadline()));
        return Status::ok();
      },
      SMEM_NO_RESOURCES);
}

MEMSPAN_EXPORT int32_t smem_shm_atomic_release_value(smem_shm_t handle, int32_t value) {
  return with<Spaces>(__func__, handle, [&](SharedSpace& shared) {
    return shared.space->numbers().give_back(static_cast<std::uint32_t>(value), shared.deadline());
  });
}

MEMSPAN_EXPORT int32_t smem_shm_register_exit(smem_shm_t handle, void (*exit)(int)) {
  return with<Spaces>(
      __func__, handle,
      [&](SharedSpace& shared) {
        if (exit == nullptr) return null_argument("exit");
        return shared.space->exit().listen(exit, shared.deadline());
      },
      SMEM_REPEAT_INVOKE);
}

MEMSPAN_EXPORT void smem_shm_global_exit(smem_shm_t handle, int status) {
  with<Spaces>(__func__, handle, [&](SharedSpace& shared) {
    return shared.space->exit().announce(status, shared.deadline());
  });
}

// ---- calls of kernels

MEMSPAN_EXPORT int32_t memspan_space_facts_of(uint32_t id, memspan_space_facts* facts) try {
  for (const void* handle : spaces().handles()) {
    const auto used = spaces().use(handle);
    if (!used || used->id != id) continue;
    Space& space = *used->space;
    const std::span<std::byte> context = space.context();
    *facts = {space.rank(),
              space.ranks(),
              space.bytes(),
              context.data(),
              static_cast<uint32_t>(context.size()),
              0};
    return 1;
  }
  return 0;
}
MEMSPAN_CATCH(0)

MEMSPAN_EXPORT void memspan_space_fence(void) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
