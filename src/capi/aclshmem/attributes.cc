// SPDX-License-Identifier: Apache-2.0
#include "capi/aclshmem/attributes.h"

#include <fmt/format.h>

#include <cstring>

#include "capi/errors.h"
#include "capi/process_state.h"
#include "capi/store_security.h"
#include "core/mutex.h"
#include "core/random.h"
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

constexpr std::size_t kSecretBytes = 16;
constexpr std::string_view kNoSecret = "-";

// The store of an unused unique id of this process.
struct UniqueId {
  Mutex mutex;
  std::string text MEMSPAN_GUARDED_BY(mutex);
  std::shared_ptr<StoreServer> server MEMSPAN_GUARDED_BY(mutex);
};
UniqueId& unused_id() {
  // Never destroyed: a server's thread may outlive main.
  static auto* const unused = new UniqueId;
  return *unused;
}

}  // namespace

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

bool is_unique_id_text(std::string_view text) {
  return text.find(' ') != std::string_view::npos;
}

Result<std::string> open_unique_id(std::size_t most) {
  MEMSPAN_TRY_ASSIGN(StoreSecurity security, chosen_security(), "protecting its store");
  // A program that said nothing about TLS gets a secret that only this id carries; one that did
  // keeps what it has to itself.
  std::string secret(kNoSecret);
  if (security.kind == StoreSecurity::Kind::kHostSecret) {
    secret = random_hex(kSecretBytes);
    security = {.kind = StoreSecurity::Kind::kSecret, .secret = secret};
  }
  const bool needs_secret = security.kind == StoreSecurity::Kind::kSecret;
  MEMSPAN_TRY_ASSIGN(const Endpoint endpoint, choose_unique_id_endpoint(needs_secret),
                     "choosing where its store listens");
  MEMSPAN_TRY_ASSIGN(
      std::shared_ptr<StoreServer> server,
      StoreServer::listen(endpoint, StoreServerOptions{.security = std::move(security)}),
      "opening its store");
  std::string text = fmt::format("{} {}", server->endpoint().place(), secret);
  if (text.size() > most)
    return Status(
        Code::kNotSupported,
        fmt::format("the place of its store, {}, and the secret need {} bytes, and an id of "
                    "this generation has room for {}; an IPv4 address fits "
                    "(SHMEM_UID_SOCK_IFNAME=NAME:inet4)",
                    server->endpoint().place(), text.size(), most));
  UniqueId& unused = unused_id();
  MutexLock lock(unused.mutex);
  unused.text = text;
  unused.server = std::move(server);
  return text;
}

StorePlace take_unique_id(std::string_view text) {
  const std::size_t space = text.find(' ');
  const std::string_view secret = text.substr(space + 1);
  StorePlace store{.url = fmt::format("tcp://{}", text.substr(0, space)),
                   .secret = secret == kNoSecret ? std::string() : std::string(secret)};
  UniqueId& unused = unused_id();
  MutexLock lock(unused.mutex);
  if (unused.text == text) store.hosted = std::exchange(unused.server, nullptr);
  return store;
}

}  // namespace memspan::capi
