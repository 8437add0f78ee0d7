// SPDX-License-Identifier: Apache-2.0
// Endpoints and what they register.
#include <memspan/transfer.h>
#include <smem/host/smem_trans.h>

#include <cstdlib>

#include "capi/smem/endpoints.h"
#include "capi/smem/members.h"

namespace memspan::capi {
namespace {

using transfer::Endpoint;
using transfer::Role;

// Ends the waits in it, so that it can be removed; false when it cannot, because this is a callback
// of it.
bool may_remove(const void* handle) {
  auto endpoint = endpoints().use(handle);
  if (!endpoint) return true;
  if (endpoint->worker().is_own_thread()) return false;
  endpoint->end_waits();
  return true;
}

// Peers learn at once that they are gone, and no thread is left when what it uses ends.
void end_all_endpoints() {
  for (void* handle : endpoints().handles())
    if (may_remove(handle)) static_cast<void>(endpoints().remove(handle));
}

void end_all_at_exit() {
  for (void* handle : endpoints().handles())
    if (auto endpoint = endpoints().use(handle)) endpoint->memory().leave_adopted_pages();
  end_all_endpoints();
}

Status check_config(const smem_trans_config_t* config) {
  constexpr unsigned kKnown = SMEMB_DATA_OP_SDMA | SMEMB_DATA_OP_HOST_RDMA |
                              SMEMB_DATA_OP_HOST_TCP | SMEMB_DATA_OP_DEVICE_RDMA |
                              SMEMB_DATA_OP_HOST_URMA;
  if (config == nullptr) return invalid("invalid param, config is null");
  const unsigned role = number_of(config->role);
  static_assert(SMEM_TRANS_SENDER == static_cast<int>(Role::kSender) &&
                SMEM_TRANS_RECEIVER == static_cast<int>(Role::kReceiver) &&
                SMEM_TRANS_BOTH == static_cast<int>(Role::kBoth));
  if (role < SMEM_TRANS_SENDER || role > SMEM_TRANS_BOTH)
    return invalid(
        "config is invalid: role is {}, allowed are SENDER (1), RECEIVER (2) and BOTH (3)",
        static_cast<int>(role));
  if (config->initTimeout == 0) return invalid("initTimeout is zero");
  const unsigned ways = number_of(config->dataOpType);
  if ((ways & ~kKnown) == 0) return Status::ok();
  return invalid(
      "config is invalid: dataOpType is {:#x}, allowed are 0 (whatever fits) and the bits {:#x}",
      ways, kKnown);
}

Status check_create(const char* url, const char* name, const smem_trans_config_t* config) {
  MEMSPAN_PASS(check_text("store_url", url));
  MEMSPAN_PASS(check_text("unique_id", name));
  return check_config(config);
}

void* allocate(const char* call, const void* handle, std::size_t bytes,
               transfer::RegisteredMemory::Place place) {
  void* address = nullptr;
  const auto check = [&] {
    return bytes != 0 ? Status::ok() : invalid("invalid capacity, which is 0");
  };
  do_at_endpoint(call, handle, check, [&](Endpoint& endpoint) {
    MEMSPAN_PASS_ASSIGN(address, endpoint.memory().allocate(bytes, place));
    return Status::ok();
  });
  return address;
}

Status check_address(const void* address) {
  return address != nullptr ? Status::ok() : invalid("invalid address, which is null");
}

Status check_ranges(void* const addresses[], const std::size_t capacities[], std::uint32_t count) {
  if (addresses == nullptr) return invalid("invalid addresses, which is null");
  if (capacities == nullptr) return invalid("invalid capacities, which is null");
  return count == 0 ? invalid("invalid count, which is 0") : Status::ok();
}

std::vector<transfer::Range> read_ranges(void* const addresses[], const std::size_t capacities[],
                                         std::uint32_t count) {
  std::vector<transfer::Range> ranges(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    ranges[i].base = reinterpret_cast<std::uint64_t>(addresses[i]);
    ranges[i].bytes = capacities[i];
  }
  return ranges;
}

}  // namespace

}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int32_t smem_trans_config_init(smem_trans_config_t* config) try {
  if (config == nullptr) return smem_result(__func__, invalid("invalid param, config is null"));
  *config = {SMEM_TRANS_SENDER, 120, UINT32_MAX, 0, SMEMB_DATA_OP_SDMA, false};
  return SMEM_OK;
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t smem_trans_init(const smem_trans_config_t* config) try {
  const Status status = check_config(config);
  if (status.is_ok()) {
    trans_is_ready = true;
    start_using_stores("trans");
  }
  return smem_result(__func__, status);
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT void smem_trans_uninit([[maybe_unused]] uint32_t flags) try {
  trans_is_ready = false;
  end_all_endpoints();
  stop_using_stores("trans");
}
MEMSPAN_CATCH()

MEMSPAN_EXPORT smem_trans_t smem_trans_create(const char* storeUrl, const char* uniqueId,
                                              const smem_trans_config_t* config) try {
  const char* const call = __func__;
  const auto fail = [call](const Status& status, std::int32_t if_unavailable = SMEM_NOT_STARTED) {
    smem_result(call, status, if_unavailable);
    return nullptr;
  };
  if (Status status = check_create(storeUrl, uniqueId, config); !status.is_ok())
    return fail(status);
  if (!trans_is_ready) {
    trans_not_ready(call);
    return nullptr;
  }
  const Deadline deadline = Deadline::after(std::chrono::seconds(config->initTimeout));
  auto member =
      member_at(storeUrl, config->startConfigServer ? Hosting::kWhenPossible : Hosting::kNever,
                AfterLoss::kReconnects, std::nullopt, deadline);
  if (!member.is_ok()) return fail(member.status());
  auto made = transfer::Endpoint::open(std::move(member).value(), uniqueId,
                                       static_cast<transfer::Role>(config->role), deadline);
  if (!made.is_ok()) return fail(made.status(), SMEM_DUPLICATED);
  // Now, so that it comes before the handlers of what this endpoint uses.
  [[maybe_unused]] static const int registered = std::atexit(end_all_at_exit);
  start_using_stores("trans");
  void* const handle = endpoints().add(std::move(made).value());
  if (handle == nullptr) smem_failure(call, SMEM_NO_RESOURCES, "too many endpoints");
  return handle;
}
MEMSPAN_CATCH(nullptr)

MEMSPAN_EXPORT void smem_trans_destroy(smem_trans_t handle, [[maybe_unused]] uint32_t flags) try {
  if (!may_remove(handle))
    smem_failure(__func__, SMEM_RES_IN_USE, "an endpoint cannot be destroyed by its own callback");
  else if (endpoints().remove(handle) == nullptr)
    endpoints().no_such(__func__, handle);
}
MEMSPAN_CATCH()

MEMSPAN_EXPORT void* smem_trans_malloc(smem_trans_t handle, size_t capacity) {
  return allocate(__func__, handle, capacity, transfer::RegisteredMemory::Place::kHost);
}

MEMSPAN_EXPORT void* memspan_transfer_device_malloc(smem_trans_t endpoint, size_t bytes) {
  return allocate(__func__, endpoint, bytes, transfer::RegisteredMemory::Place::kDevice);
}

MEMSPAN_EXPORT int32_t smem_trans_free(smem_trans_t handle, void* address) {
  return do_at_endpoint(
      __func__, handle, [&] { return check_address(address); },
      [&](transfer::Endpoint& endpoint) { return endpoint.memory().release(address); });
}

MEMSPAN_EXPORT int32_t smem_trans_register_mem(smem_trans_t handle, void* address, size_t capacity,
                                               [[maybe_unused]] uint32_t flags) {
  const auto base = reinterpret_cast<std::uint64_t>(address);
  return do_at_endpoint(
      __func__, handle, [&] { return transfer::check_range(base, capacity); },
      [&](transfer::Endpoint& endpoint) { return endpoint.memory().add(base, capacity); });
}

MEMSPAN_EXPORT int32_t memspan_transfer_register_adopted(smem_trans_t endpoint, void* address,
                                                         size_t bytes) {
  const auto base = reinterpret_cast<std::uint64_t>(address);
  return do_at_endpoint(
      __func__, endpoint, [&] { return transfer::check_range(base, bytes); },
      [&](transfer::Endpoint& at) { return at.memory().add_adopted(base, bytes); });
}

MEMSPAN_EXPORT int32_t smem_trans_batch_register_mem(smem_trans_t handle, void* addresses[],
                                                     size_t capacities[], uint32_t count,
                                                     [[maybe_unused]] uint32_t flags) {
  return do_at_endpoint(
      __func__, handle, [&] { return check_ranges(addresses, capacities, count); },
      [&](transfer::Endpoint& endpoint) {
        return endpoint.memory().add_joined(read_ranges(addresses, capacities, count));
      });
}

MEMSPAN_EXPORT int32_t smem_trans_deregister_mem(smem_trans_t handle, void* address) {
  return do_at_endpoint(
      __func__, handle, [&] { return check_address(address); },
      [&](transfer::Endpoint& endpoint) {
        Status status = endpoint.memory().remove(reinterpret_cast<std::uint64_t>(address));
        return status.code() == Code::kNotFound ? Status::ok() : status;
      });
}

MEMSPAN_EXPORT int32_t smem_trans_set_peer_down_callback(smem_trans_t handle,
                                                         smem_trans_peer_down_callback_t down,
                                                         void* userData) {
  return with<Endpoints>(__func__, handle, [&](transfer::Endpoint& endpoint) {
    if (down == nullptr) return endpoint.worker().set_on_peer_down(nullptr);
    return endpoint.worker().set_on_peer_down(
        [down, userData](const std::string& peer) { down(peer.c_str(), userData); });
  });
}
