// SPDX-License-Identifier: Apache-2.0
// Share Memory: becoming a member, and spaces.
#include "capi/smem/shm.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "capi/smem/fork_aware_singleton.h"
#include "capi/smem/number_of.h"
#include "capi/smem/rank_binding.h"
#include "device/choice.h"

namespace memspan::capi {
namespace {

constexpr std::uint32_t kOperations = SMEMS_DATA_OP_MTE | SMEMS_DATA_OP_SDMA | SMEMS_DATA_OP_RDMA;

struct ShareMemoryBinding : RankBinding {
  ShareMemoryBinding() : RankBinding("shm", "SHM", "space") {}
};

RankBinding& space_binding() {
  return fork_aware_singleton<ShareMemoryBinding>();
}

// ---- becoming a member

Status check_config(std::uint32_t ranks, std::uint32_t rank, const smem_shm_config_t* config) {
  MEMSPAN_PASS(check_world_size(ranks));
  if (rank >= ranks)
    return invalid(
        fmt::format("invalid param, rankId is {}, allowed are 0 to {}", rank, ranks - 1));
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
  auto membership =
      space_binding().claim(std::move(member), static_cast<int>(rank), ranks, deadline);
  if (!membership.is_ok()) return membership;
  membership->create_limit = std::chrono::seconds(config.shmCreateTimeout);
  membership->limit = std::chrono::seconds(config.controlOperationTimeout);
  return membership;
}

// ---- spaces

struct SpaceRequest {
  std::uint32_t id;
  std::uint32_t ranks;
  std::uint32_t rank;
  std::uint64_t bytes;
  std::uint32_t operations;
};

Status check_space(const SpaceRequest& request, std::uint32_t world, void* const* gva) {
  if (request.id > kMostSpaceId)
    return invalid(
        fmt::format("invalid id, id range is: [0, {}], not {}", kMostSpaceId, request.id));
  MEMSPAN_PASS(check_ranks(request.ranks, request.rank, world));
  if (gva == nullptr) return invalid("invalid param, gva is NULL");
  if (request.bytes > kMostSpaceBytes)
    return invalid(fmt::format("symmetric size exceeded: {}, allowed are up to {} bytes",
                               request.bytes, kMostSpaceBytes));
  if ((request.operations & ~kOperations) != 0)
    return invalid(fmt::format("invalid param, dataOpType is {:#x}, allowed are SMEMS_DATA_OP_...",
                               request.operations));
  return Status::ok();
}

Result<void*> make_space(const RankMembership& membership, const SpaceRequest& request,
                         void** gva) {
  MEMSPAN_TRY_ASSIGN(Device* const device, chosen_device(), "choosing the device of the space");
  MEMSPAN_PASS_ASSIGN(auto space, Space::create(membership.member,
                                                {.name = fmt::format("shm/{}", request.id),
                                                 .rank = request.rank,
                                                 .ranks = request.ranks,
                                                 .bytes = request.bytes,
                                                 .device = device},
                                                Deadline::after(membership.create_limit)));
  auto shared = std::make_unique<SharedSpace>();
  shared->id = request.id;
  shared->limit = membership.limit;
  shared->space = std::move(space);
  *gva = shared->space->base();
  return shared_spaces().add(std::move(shared));  // there is a slot for every id
}

smem_shm_t create_space(const char* call, const SpaceRequest& request, void** gva) {
  return space_binding().create(
      call, request.id,
      [&](std::uint32_t most_ranks) { return check_space(request, most_ranks, gva); },
      SMEM_DUPLICATED,
      [&](const RankMembership& membership) { return make_space(membership, request, gva); });
}

// Ends its collectives first: remove() would wait for callers that wait for peers.
bool destroy_space(const void* handle) {
  if (const auto used = shared_spaces().use(handle)) used->space->close();
  std::unique_ptr<SharedSpace> shared = shared_spaces().remove(handle);
  if (shared == nullptr) return false;
  const std::uint32_t id = shared->id;
  shared.reset();
  space_binding().free_id(id);
  return true;
}

}  // namespace

SharedSpaces& shared_spaces() {
  return fork_aware_singleton<SharedSpaces>();
}

std::int32_t no_such_space(const char* call, const void* handle) {
  return space_binding().no_such_object(call, handle);
}

Status check_ranks(std::uint32_t size, std::uint32_t rank, std::uint32_t most) {
  if (size == 0 || size > most)
    return invalid(fmt::format("rankSize is invalid! input:{} option:{}", size, most));
  if (rank >= size) return invalid(fmt::format("rankId is invalid! rank:{} size:{}", rank, size));
  return Status::ok();
}

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
  return space_binding().init(
      __func__, [&] { return check_config(worldSize, rankId, config); },
      [&] { return become_member(configStoreIpPort, worldSize, rankId, *config); });
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT void smem_shm_uninit([[maybe_unused]] uint32_t flags) try {
  for (const void* handle : shared_spaces().handles()) destroy_space(handle);
  space_binding().uninit();
}
MEMSPAN_CATCH()

MEMSPAN_EXPORT uint32_t smem_shm_query_support_data_operation(void) {
  return SMEMS_DATA_OP_MTE;
}

MEMSPAN_EXPORT smem_shm_t smem_shm_create(uint32_t id, uint32_t rankSize, uint32_t rankId,
                                          uint64_t symmetricSize, smem_shm_data_op_type dataOpType,
                                          [[maybe_unused]] uint32_t flags, void** gva) try {
  return create_space(__func__, {id, rankSize, rankId, symmetricSize, number_of(dataOpType)}, gva);
}
MEMSPAN_CATCH(nullptr)

MEMSPAN_EXPORT int32_t smem_shm_destroy(smem_shm_t handle, [[maybe_unused]] uint32_t flags) try {
  return destroy_space(handle) ? SMEM_OK : no_such_space(__func__, handle);
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)
