// SPDX-License-Identifier: Apache-2.0
#include "capi/aclshmem/attributes.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "capi/errors.h"
#include "capi/process_state.h"
#include "capi/store_security.h"
#include "store/store_address.h"
#include "world/launch.h"
#include "world/membership.h"

namespace memspan::capi {
namespace {

constexpr std::uint32_t kAllEngines =
    ACLSHMEM_DATA_OP_MTE | ACLSHMEM_DATA_OP_SDMA | ACLSHMEM_DATA_OP_ROCE | ACLSHMEM_DATA_OP_UDMA;

Result<Membership> join_as_launched(const Launch& launch, const shmem_init_attr_t& attributes) {
  if (launch.rank != attributes.my_rank || launch.size != attributes.n_ranks)
    return Status(Code::kInvalidArgument,
                  fmt::format("the attributes say rank {} of {}, the launcher says rank {} of {}",
                              attributes.my_rank, attributes.n_ranks, launch.rank, launch.size));
  return join_launched(launch);
}

Result<Membership> join_by_attributes(const shmem_init_attr_t& attributes,
                                      const StorePlace& store) {
  if (process_state.instance == 0) {
    MEMSPAN_TRY_ASSIGN(auto launch, Launch::from_environment(), "asking the launcher");
    if (launch.has_value()) return join_as_launched(*launch, attributes);
  }
  if (attributes.n_ranks == 1) return join_single();
  Rendezvous rendezvous;
  rendezvous.rank = attributes.my_rank;
  rendezvous.size = attributes.n_ranks;
  rendezvous.hosted = store.hosted;
  MEMSPAN_TRY_ASSIGN(rendezvous.security, chosen_security(), "protecting the store");
  if (!store.secret.empty())
    rendezvous.security =
        StoreSecurity{.kind = StoreSecurity::Kind::kSecret, .secret = store.secret};
  MEMSPAN_TRY_ASSIGN(rendezvous.store, StoreAddress::parse(store.url), "reading ip_port");
  if (rendezvous.store.is_etcd()) rendezvous.host = Rendezvous::Host::kElsewhere;
  return join_rendezvous(rendezvous, std::chrono::seconds(attributes.option_attr.shm_init_timeout));
}

int bad_value(const char* call, const char* what, std::int64_t value, std::string_view allowed) {
  return shmem_failure(call, SHMEM_INVALID_VALUE,
                       fmt::format("{} is {}, allowed {}", what, value, allowed));
}

int check_engine_and_timeouts(const char* call, const shmem_init_optional_attr_t& options) {
  for (auto [name, seconds] :
       {std::pair{"shm_init_timeout", options.shm_init_timeout},
        std::pair{"shm_create_timeout", options.shm_create_timeout},
        std::pair{"control_operation_timeout", options.control_operation_timeout}})
    if (seconds == 0) return bad_value(call, name, seconds, "is 1 second and more");
  // A C caller may have stored any number, and C++ may not load it as the enumeration.
  static_assert(sizeof options.data_op_engine_type == sizeof(std::uint32_t));
  std::uint32_t engine = 0;
  std::memcpy(&engine, &options.data_op_engine_type, sizeof engine);
  if (engine == 0 || (engine & ~kAllEngines) != 0)
    return bad_value(call, "data_op_engine_type", engine,
                     "is any sum of MTE (1), SDMA (2), ROCE (4) and UDMA (8)");
  return 0;
}

}  // namespace

AclshmemState& aclshmem_state() {
  // Never destroyed: a server's thread may outlive main.
  static auto* const state = new AclshmemState;
  return *state;
}

int check_numbers(const char* call, int rank, int size, std::uint64_t bytes) {
  if (rank < 0) return bad_value(call, "my_rank", rank, "is 0 and more");
  if (size <= 0 || size > kMostPes)
    return bad_value(call, "n_ranks", size, fmt::format("are 1 to {}", kMostPes));
  if (rank >= size)
    return shmem_failure(call, SHMEM_INVALID_PARAM,
                         fmt::format("my_rank is {}, allowed are 0 to {}, since n_ranks is {}",
                                     rank, size - 1, size));
  if (bytes == 0) return bad_value(call, "local_mem_size", 0, "is 1 byte and more");
  return 0;
}

int check_attributes(const char* call, const shmem_init_attr_t& attributes) {
  if (int failure =
          check_numbers(call, attributes.my_rank, attributes.n_ranks, attributes.local_mem_size);
      failure != 0)
    return failure;
  return check_engine_and_timeouts(call, attributes.option_attr);
}

int start_by_attributes(const char* call, const shmem_init_attr_t& attributes,
                        const StorePlace& store) {
  if (int failure = check_attributes(call, attributes); failure != 0) return failure;
  Start how{call, [&] { return join_by_attributes(attributes, store); },
            [&] { return Result<HeapSize>(attributes.local_mem_size); },
            std::chrono::seconds(attributes.option_attr.control_operation_timeout)};
  return shmem_result(call, start(how, Sharing::kExclusive));
}

}  // namespace memspan::capi
