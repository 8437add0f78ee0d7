// SPDX-License-Identifier: Apache-2.0
// Share Memory: becoming a member, and spaces.
#include "capi/smem/shm.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <set>
#include <string>

#include "capi/smem/members.h"
#include "capi/smem/of_process.h"
#include "core/mutex.h"

namespace memspan::capi {
namespace {

constexpr std::uint32_t kOperations = SMEMS_DATA_OP_MTE | SMEMS_DATA_OP_SDMA | SMEMS_DATA_OP_RDMA;

// This process as a rank of Share Memory.
struct Membership {
  std::shared_ptr<Member> member;  // shared with Big Memory and Trans
  std::uint32_t ranks = 0;
  Duration create_limit = {};
  Duration limit = {};
};

struct ShareMemoryState {
  Mutex mutex;
  std::optional<Membership> membership MEMSPAN_GUARDED_BY(mutex);
  std::set<std::uint32_t> ids MEMSPAN_GUARDED_BY(mutex);  // of spaces that are or are being made
  std::optional<ClaimedRank> rank MEMSPAN_GUARDED_BY(mutex);
};

ShareMemoryState& state() {
  return of_process<ShareMemoryState>();
}

constexpr const char* kNotYet = "smem shm not initialized yet";

Status invalid(std::string message) {
  return {Code::kInvalidArgument, std::move(message)};
}

// ---- becoming a member

Status check_config(std::uint32_t ranks, std::uint32_t rank, const smem_shm_config_t* config) {
  if (ranks == 0) return invalid("invalid param, worldSize is 0");
  if (ranks > SMEM_WORLD_SIZE_MAX)
    return invalid(fmt::format("invalid param, worldSize is too large: {}, allowed are 1 to {}",
                               ranks, SMEM_WORLD_SIZE_MAX));
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

Result<Membership> become_member(ShareMemoryState& shm, const char* url, std::uint32_t ranks,
                                 std::uint32_t rank, const smem_shm_config_t& config)
    MEMSPAN_REQUIRES(shm.mutex) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(config.shmInitTimeout));
  const bool hosts = config.startConfigStoreServer && rank == 0;
  auto member =
      member_at(url, hosts ? Hosting::kWhenPossible : Hosting::kNever, std::nullopt, deadline);
  if (!member.is_ok()) return member.status();
  auto taken = ClaimedRank::take(*member, "shm", static_cast<int>(rank), ranks, deadline);
  if (!taken.is_ok()) return taken.status();
  shm.rank.emplace(std::move(taken).value());
  return Membership{.member = std::move(member).value(),
                    .ranks = ranks,
                    .create_limit = std::chrono::seconds(config.shmCreateTimeout),
                    .limit = std::chrono::seconds(config.controlOperationTimeout)};
}

// ---- spaces

struct SpaceWish {
  std::uint32_t id;
  std::uint32_t ranks;
  std::uint32_t rank;
  std::uint64_t bytes;
  std::uint32_t operations;
};

Status check_space(const SpaceWish& wish, std::uint32_t world, void* const* gva) {
  if (wish.id > kMostSpaceId)
    return invalid(fmt::format("invalid id, id range is: [0, {}], not {}", kMostSpaceId, wish.id));
  MEMSPAN_PASS(check_ranks(wish.ranks, wish.rank, world));
  if (gva == nullptr) return invalid("invalid param, gva is NULL");
  if (wish.bytes > kMostSpaceBytes)
    return invalid(fmt::format("symmetric size exceeded: {}, allowed are up to {} bytes",
                               wish.bytes, kMostSpaceBytes));
  if ((wish.operations & ~kOperations) != 0)
    return invalid(fmt::format("invalid param, dataOpType is {:#x}, allowed are SMEMS_DATA_OP_...",
                               wish.operations));
  return Status::ok();
}

smem_shm_t create_failure(const char* call, std::uint32_t id, std::int32_t code,
                          std::string_view why) {
  smem_failure(call, code, fmt::format("create SHM entity({}) failed: {}: {}", id, code, why));
  return nullptr;
}

std::int32_t code_of_failed_create(const Status& status) {
  return status.code() == Code::kUnavailable ? SMEM_DUPLICATED : smem_code(status);
}

smem_shm_t create_space(const char* call, const SpaceWish& wish, void** gva) {
  ShareMemoryState& shm = state();
  Membership membership;
  {
    MutexLock lock(shm.mutex);
    if (!shm.membership) return create_failure(call, wish.id, SMEM_NOT_INIT, kNotYet);
    if (const Status status = check_space(wish, shm.membership->ranks, gva); !status.is_ok())
      return create_failure(call, wish.id, SMEM_INVALID_PARAM, status.message());
    if (!shm.ids.insert(wish.id).second)
      return create_failure(call, wish.id, SMEM_DUPLICATED, "this process has a space of that id");
    membership = *shm.membership;
  }
  auto space = Space::create(membership.member,
                             {.name = fmt::format("shm/{}", wish.id),
                              .rank = wish.rank,
                              .ranks = wish.ranks,
                              .bytes = wish.bytes},
                             Deadline::after(membership.create_limit));
  if (!space.is_ok()) {
    MutexLock lock(shm.mutex);
    shm.ids.erase(wish.id);
    return create_failure(call, wish.id, code_of_failed_create(space.status()),
                          space.status().message());
  }
  auto shared = std::make_unique<SharedSpace>();
  shared->id = wish.id;
  shared->limit = membership.limit;
  shared->space = std::move(space).value();
  *gva = shared->space->base();
  return shared_spaces().add(std::move(shared));  // there is a slot for every id
}

// Its meetings end first, so that nobody waits for who waits for others.
bool destroy_space(ShareMemoryState& shm, const void* handle) {
  if (const auto used = shared_spaces().use(handle)) used->space->close();
  std::unique_ptr<SharedSpace> shared = shared_spaces().remove(handle);
  if (shared == nullptr) return false;
  const std::uint32_t id = shared->id;
  shared.reset();
  MutexLock lock(shm.mutex);
  shm.ids.erase(id);
  return true;
}

}  // namespace

SharedSpaces& shared_spaces() {
  return of_process<SharedSpaces>();
}

std::int32_t no_such_space(const char* call, const void* handle) {
  ShareMemoryState& shm = state();
  bool is_initialized = false;
  {
    MutexLock lock(shm.mutex);
    is_initialized = shm.membership.has_value();
  }
  if (handle != nullptr && !is_initialized) return smem_failure(call, SMEM_NOT_INIT, kNotYet);
  return bad_handle(call, handle, "space");
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

MEMSPAN_EXPORT int32_t smem_shm_config_init(smem_shm_config_t* config) {
  if (config == nullptr) return smem_failure(__func__, SMEM_INVALID_PARAM, "config is null");
  constexpr std::uint32_t kSeconds = 120;
  *config = {};
  config->shmInitTimeout = config->shmCreateTimeout = config->controlOperationTimeout = kSeconds;
  config->startConfigStoreServer = true;
  return SMEM_OK;
}

MEMSPAN_EXPORT int32_t smem_shm_init(const char* configStoreIpPort, uint32_t worldSize,
                                     uint32_t rankId, [[maybe_unused]] uint16_t deviceId,
                                     smem_shm_config_t* config) {
  ShareMemoryState& shm = state();
  MutexLock lock(shm.mutex);
  if (shm.membership) return SMEM_OK;
  if (const Status status = check_config(worldSize, rankId, config); !status.is_ok())
    return smem_result(__func__, status);
  auto membership = become_member(shm, configStoreIpPort, worldSize, rankId, *config);
  if (membership.is_ok()) {
    shm.membership = std::move(membership).value();
    return SMEM_OK;
  }
  const std::int32_t code =
      membership.code() == Code::kUnavailable ? SMEM_RES_IN_USE : smem_code(membership.status());
  return smem_failure(__func__, code,
                      fmt::format("init shm entry manager failed, result: {}: {}", code,
                                  membership.status().message()));
}

MEMSPAN_EXPORT void smem_shm_uninit([[maybe_unused]] uint32_t flags) {
  ShareMemoryState& shm = state();
  for (const void* handle : shared_spaces().handles()) destroy_space(shm, handle);
  MutexLock lock(shm.mutex);
  shm.rank.reset();
  shm.membership.reset();
}

MEMSPAN_EXPORT uint32_t smem_shm_query_support_data_operation(void) {
  return SMEMS_DATA_OP_MTE;
}

MEMSPAN_EXPORT smem_shm_t smem_shm_create(uint32_t id, uint32_t rankSize, uint32_t rankId,
                                          uint64_t symmetricSize, smem_shm_data_op_type dataOpType,
                                          [[maybe_unused]] uint32_t flags, void** gva) {
  // A C program may have given any number, which C++ must not look at as the enumeration.
  std::uint32_t operations = 0;
  std::memcpy(&operations, &dataOpType, sizeof operations);
  return create_space(__func__, {id, rankSize, rankId, symmetricSize, operations}, gva);
}

MEMSPAN_EXPORT int32_t smem_shm_destroy(smem_shm_t handle, [[maybe_unused]] uint32_t flags) {
  return destroy_space(state(), handle) ? SMEM_OK : no_such_space(__func__, handle);
}
