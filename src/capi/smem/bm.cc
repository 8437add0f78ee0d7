// SPDX-License-Identifier: Apache-2.0
// Big Memory but its copies: becoming a member, pools, joining, and what addresses mean.
#include "capi/smem/bm.h"

#include "capi/store_security.h"
#include "core/log.h"
#include "device/choice.h"
#include "fabric/pool_copy.h"

namespace memspan::capi {
namespace {

constexpr std::uint32_t kNumaMask = (1U << SMEM_BM_BIND_NUMA_FLAG_LEN) - 1;
constexpr std::uint32_t kNumaIsSaid = 1U << SMEM_BM_PERFORMANCE_MODE_FLAG_INDEX;
// Later releases have two more, which say nothing to this device.
constexpr std::uint32_t kKnownFlags = (1U << 11) - 1;
constexpr std::uint32_t kKnownOperations = 0xff;

constexpr auto& pools = fork_aware_singleton<Pools>;

// ---- becoming a member

Status check_config(std::uint32_t ranks, const smem_bm_config_t* config) {
  MEMSPAN_PASS(check_world_size(ranks));
  if (config == nullptr) return invalid("config is null");
  if (!config->unifiedAddressSpace)
    return invalid("config is invalid: unifiedAddressSpace must be true");
  if (config->initTimeout == 0) return invalid("config is invalid: initTimeout is zero");
  if (config->createTimeout == 0) return invalid("config is invalid: createTimeout is zero");
  if (config->controlOperationTimeout == 0)
    return invalid("config is invalid: controlOperationTimeout is zero");
  if (!config->autoRanking && config->rankId >= ranks)
    return invalid("config is invalid: rankId is {}, allowed are 0 to {}", config->rankId,
                   ranks - 1);
  if (std::memchr(config->hcomUrl, '\0', sizeof config->hcomUrl) == nullptr)
    return invalid("config is invalid: hcomUrl has no end within {} bytes", sizeof config->hcomUrl);
  const std::string_view url = config->hcomUrl;
  if (!url.empty() && !url.starts_with("tcp://"))
    return invalid("config is invalid: hcomUrl is \"{}\", allowed is tcp://IP[/MASK]:PORT", url);
  return Status::ok();
}

Result<RankMembership> become_member(const char* url, std::uint32_t ranks,
                                     const smem_bm_config_t& config) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(config.initTimeout));
  MEMSPAN_PASS_ASSIGN(auto security, security_of(config.storeTlsConfig));
  if (config.startConfigStoreOnly) {
    MEMSPAN_PASS_ASSIGN(auto endpoint, read_url(url));
    MEMSPAN_PASS_ASSIGN(auto chosen,
                        security ? Result<StoreSecurity>(*security) : chosen_security());
    MEMSPAN_PASS(host_store(endpoint, chosen));
    return RankMembership{};
  }
  const bool may_host = config.startConfigStoreServer && (config.autoRanking || config.rankId == 0);
  MEMSPAN_PASS_ASSIGN(auto member,
                      member_at(url, may_host ? Hosting::kWhenPossible : Hosting::kNever,
                                AfterLoss::kEnds, std::move(security), deadline));
  return pools().claim(std::move(member), config.autoRanking ? -1 : config.rankId, ranks,
                       {std::chrono::seconds(config.createTimeout),
                        std::chrono::seconds(config.controlOperationTimeout)},
                       deadline);
}

// ---- pools

MEMSPAN_REMEDY(kPoolSize, "pool-size",
               "maxDramSize and maxHbmSize must be at least as large as any member's share.",
               "Raise them to the same value on all members, or contribute less.");

Status check_option(const smem_bm_create_option_t* option) {
  if (option == nullptr) return invalid("invalid param, option is null");
  if (option->maxDramSize == 0 && option->maxHbmSize == 0)
    return invalid("invalid param, maxMemorySize is 0: the pool needs host or device memory");
  if (option->localDRAMSize > kMostHostBytes)
    return invalid("local DRAM size exceeded: {}, allowed are up to {} bytes",
                   option->localDRAMSize, kMostHostBytes);
  if (option->localHBMSize > kMostDeviceBytes)
    return invalid("local HBM size exceeded: {}, allowed are up to {} bytes", option->localHBMSize,
                   kMostDeviceBytes);
  if (option->maxDramSize < option->localDRAMSize)
    return invalid("maxDramSize less than localMemorySize: {} and {}{}", option->maxDramSize,
                   option->localDRAMSize, kPoolSize);
  if (option->maxHbmSize < option->localHBMSize)
    return invalid("maxHBMSize less than localMemorySize: {} and {}{}", option->maxHbmSize,
                   option->localHBMSize, kPoolSize);
  if ((option->flags & ~kKnownFlags) != 0)
    return invalid("invalid param, flags are {:#x}, allowed are the lowest 11 bits", option->flags);
  if ((option->flags & SMEM_BM_FLAG_CREATE_WITH_SHM) != 0 &&
      (option->dramShmFd < 0 || option->localDRAMSize == 0))
    return invalid("share memory flag set, but input fd invalid: {}, or local dram size zero.",
                   option->dramShmFd);
  if ((number_of(option->dataOpType) & kKnownOperations) == 0)
    return invalid("invalid opType {:#x}, allowed are SMEMB_DATA_OP_...",
                   number_of(option->dataOpType));
  return Status::ok();
}

std::optional<int> node_of(std::uint32_t flags) {
  if ((flags & kNumaIsSaid) == 0) return std::nullopt;
  const std::uint32_t node = flags & kNumaMask;
  return node == kNumaMask ? -1 : static_cast<int>(node);
}

Result<std::unique_ptr<BigMemory>> make_pool(std::uint32_t id,
                                             const smem_bm_create_option_t& option,
                                             const RankMembership& membership) {
  PoolOptions options{
      .name = fmt::format("bm/{}", id),
      .rank = membership.rank(),
      .ranks = membership.ranks,
      .contributions = {ContributionRequest{option.maxDramSize, option.localDRAMSize},
                        ContributionRequest{option.maxHbmSize, option.localHBMSize}},
      .numa = node_of(option.flags)};
  MEMSPAN_TRY_ASSIGN(options.device, chosen_device(), "choosing the device of the pool");
  MEMSPAN_PASS_ASSIGN(
      options.tags,
      parse_tags({option.tag, strnlen(option.tag, sizeof option.tag)},
                 {option.tagOpInfo, strnlen(option.tagOpInfo, sizeof option.tagOpInfo)}));
  if ((option.flags & SMEM_BM_FLAG_CREATE_WITH_SHM) != 0) {
    options.host_memory = duplicate(option.dramShmFd);
    if (!options.host_memory.is_valid())
      return invalid("share memory flag set, but input fd invalid: {}", option.dramShmFd);
  }
  auto memory = std::make_unique<BigMemory>();
  MEMSPAN_PASS_ASSIGN(memory->pool, Pool::create(membership.member, std::move(options),
                                                 Deadline::after(membership.limits.create)));
  memory->id = id;
  memory->limit = membership.limits.operation;
  return memory;
}

smem_bm_t create_pool(const char* call, std::uint32_t id, const smem_bm_create_option_t* option) {
  return pools().create(
      call, id, [&](std::uint32_t) { return check_option(option); }, SMEM_RES_IN_USE,
      [&](const RankMembership& membership) -> Result<void*> {
        MEMSPAN_PASS_ASSIGN(auto pool, make_pool(id, *option, membership));
        if (const Status& placed = pool->pool->placement(); !placed.is_ok())
          log_line(LogLevel::kWarn, fmt::format("{}: {}", call, placed.message()));
        return pools().add(std::move(pool));
      });
}

std::int32_t join_pool(const char* call, smem_bm_t handle, void** address) {
  const auto join = [&](BigMemory& memory) {
    Pool& pool = *memory.pool;
    MEMSPAN_PASS(pool.join(memory.deadline()));
    const RangeKind kind =
        pool.windows(RangeKind::kHost).bytes() > 0 ? RangeKind::kHost : RangeKind::kDevice;
    if (address != nullptr) *address = pool.windows(kind).begin_of(pool.rank());
    return Status::ok();
  };
  return with<Pools>(call, handle, join, SMEM_DUPLICATED);
}

std::optional<RangeKind> kind_of(smem_bm_mem_type type) {
  if (type == SMEM_MEM_TYPE_HOST || type == SMEM_MEM_TYPE_LOCAL_HOST) return RangeKind::kHost;
  if (type == SMEM_MEM_TYPE_DEVICE || type == SMEM_MEM_TYPE_LOCAL_DEVICE) return RangeKind::kDevice;
  return std::nullopt;
}

Status bad_type(smem_bm_mem_type type) {
  return invalid("input mem type is invalid, memType: {}", static_cast<int>(type));
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int32_t smem_bm_config_init(smem_bm_config_t* config) try {
  if (config == nullptr) return smem_failure(__func__, SMEM_INVALID_PARAM, "config is null");
  constexpr std::uint32_t kSeconds = 120;
  *config = {};
  config->initTimeout = config->createTimeout = config->controlOperationTimeout = kSeconds;
  config->startConfigStoreServer = true;
  config->unifiedAddressSpace = true;
  config->autoRanking = true;
  config->rankId = UINT16_MAX;
  return SMEM_OK;
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t smem_bm_init(const char* storeURL, uint32_t worldSize,
                                    [[maybe_unused]] uint16_t deviceId,
                                    const smem_bm_config_t* config) try {
  return pools().init(
      __func__, [&] { return check_config(worldSize, config); },
      [&] { return become_member(storeURL, worldSize, *config); });
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT void smem_bm_uninit([[maybe_unused]] uint32_t flags) try { pools().destroy_all(); }
MEMSPAN_CATCH()

MEMSPAN_EXPORT uint32_t smem_bm_get_rank_id(void) try {
  if (const auto membership = pools().membership()) return membership->rank();
  pools().no_member(__func__);
  return UINT32_MAX;
}
MEMSPAN_CATCH(UINT32_MAX)

MEMSPAN_EXPORT smem_bm_t smem_bm_create(uint32_t id, [[maybe_unused]] uint32_t memberSize,
                                        smem_bm_data_op_type dataOpType, uint64_t localDRAMSize,
                                        uint64_t localHBMSize, uint32_t flags) try {
  smem_bm_create_option_t option = {};
  option.maxDramSize = option.localDRAMSize = localDRAMSize;
  option.maxHbmSize = option.localHBMSize = localHBMSize;
  option.dataOpType = dataOpType;
  option.flags = flags & ~SMEM_BM_FLAG_CREATE_WITH_SHM;
  return create_pool(__func__, id, &option);
}
MEMSPAN_CATCH(nullptr)

MEMSPAN_EXPORT smem_bm_t smem_bm_create2(uint32_t id, const smem_bm_create_option_t* option) try {
  return create_pool(__func__, id, option);
}
MEMSPAN_CATCH(nullptr)

MEMSPAN_EXPORT void smem_bm_destroy(smem_bm_t handle) try {
  if (!pools().destroy(handle)) pools().no_such(__func__, handle);
}
MEMSPAN_CATCH()

MEMSPAN_EXPORT int32_t smem_bm_join(smem_bm_t handle, [[maybe_unused]] uint32_t flags) {
  return join_pool(__func__, handle, nullptr);
}

// The symbol that the header's form with three arguments names.
__attribute__((visibility("default"))) int32_t smem_bm_join(smem_bm_t handle,
                                                            [[maybe_unused]] uint32_t flags,
                                                            void** localGvaAddress) {
  return join_pool(__func__, handle, localGvaAddress);
}

MEMSPAN_EXPORT int32_t smem_bm_leave(smem_bm_t handle, [[maybe_unused]] uint32_t flags) {
  return with<Pools>(__func__, handle,
                     [](BigMemory& memory) { return memory.pool->leave(memory.deadline()); });
}

MEMSPAN_EXPORT uint64_t smem_bm_get_local_mem_size_by_mem_type(smem_bm_t handle,
                                                               smem_bm_mem_type memType) {
  std::uint64_t bytes = 0;
  with<Pools>(__func__, handle, [&](BigMemory& memory) {
    const auto kind = kind_of(memType);
    if (!kind) return bad_type(memType);
    bytes = memory.pool->contribution(*kind).bytes;
    return Status::ok();
  });
  return bytes;
}

MEMSPAN_EXPORT void* smem_bm_ptr_by_mem_type(smem_bm_t handle, smem_bm_mem_type memType,
                                             uint16_t peerRankId) {
  return value_with<Pools, void*>(
      __func__, handle, nullptr, [&](BigMemory& memory) -> Result<void*> {
        if (memType != SMEM_MEM_TYPE_HOST && memType != SMEM_MEM_TYPE_DEVICE)
          return bad_type(memType);
        const RankWindows& windows = memory.pool->windows(*kind_of(memType));
        if (peerRankId >= memory.pool->ranks())
          return invalid("invalid param, peerRankId too large: {}, allowed are 0 to {}", peerRankId,
                         memory.pool->ranks() - 1);
        if (windows.bytes() == 0)
          return invalid("the pool has no memory of that type: its largest size is 0");
        return windows.begin_of(peerRankId);
      });
}

MEMSPAN_EXPORT uint32_t smem_bm_get_rank_id_by_gva(smem_bm_t handle, void* gva) {
  return value_with<Pools>(__func__, handle, UINT32_MAX, [&](BigMemory& memory) {
    const auto place = find_place(*memory.pool, gva);
    return Result<std::uint32_t>(place ? place->rank : UINT32_MAX);
  });
}

MEMSPAN_EXPORT int32_t smem_bm_register_user_mem(smem_bm_t handle, uint64_t addr, uint64_t size) {
  return with<Pools>(
      __func__, handle, [&](BigMemory& memory) { return memory.user_memory.add(addr, size); },
      SMEM_RES_IN_USE);
}

MEMSPAN_EXPORT int32_t smem_bm_unregister_user_mem(smem_bm_t handle, uint64_t addr) {
  return with<Pools>(__func__, handle, [&](BigMemory& memory) {
    if (addr == 0) return invalid("invalid param, addr eq 0");
    memory.user_memory.remove(addr);
    return Status::ok();
  });
}

// ---- the functions of memspan/pool.h

MEMSPAN_EXPORT int32_t memspan_pool_wait_members(smem_bm_t pool, uint32_t count,
                                                 uint32_t timeout_ms) {
  const Deadline deadline = deadline_of(timeout_ms);
  return with<Pools>(__func__, pool, [&](BigMemory& memory) {
    const std::uint32_t ranks = memory.pool->ranks();
    return OfTurn{count == 0 || count > ranks
                      ? invalid("count is {}, allowed are 1 to {}", count, ranks)
                      : memory.pool->await_members(count, deadline)};
  });
}

MEMSPAN_EXPORT int32_t memspan_pool_wait_rank(smem_bm_t pool, uint32_t rank, uint32_t timeout_ms) {
  const Deadline deadline = deadline_of(timeout_ms);
  return with<Pools>(__func__, pool, [&](BigMemory& memory) {
    const std::uint32_t ranks = memory.pool->ranks();
    return OfTurn{rank >= ranks ? invalid("rank is {}, allowed are 0 to {}", rank, ranks - 1)
                                : memory.pool->await_member(rank, deadline)};
  });
}
