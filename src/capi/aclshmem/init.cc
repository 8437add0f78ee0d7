// SPDX-License-Identifier: Apache-2.0
// Start by attributes or a unique id, end, and settings before the start. Longer than other files,
// so that only it knows what the ways to start share.
#include <fmt/format.h>

#include <cstring>

#include "capi/aclshmem/instances.h"
#include "capi/errors.h"
#include "capi/failures.h"
#include "capi/process_state.h"
#include "capi/store_security.h"
#include "core/mutex.h"
#include "core/random.h"
#include "store/server.h"
#include "store/store_address.h"
#include "world/launch.h"
#include "world/membership.h"
#include "world/mpi_job.h"

namespace memspan::capi {
namespace {

constexpr std::uint32_t kDefaultTimeoutSeconds = 120;
constexpr int kVersionTag = 1 << 16;
constexpr const char* kName = "SHMEM v1.1.1";

// The store through which a job meets; its URL comes from a unique id or from the attributes.
struct StorePlace {
  std::string url;
  std::string secret = {};                   // of a unique id; empty: as the process chose
  std::shared_ptr<StoreServer> hosted = {};  // owners: see Rendezvous
};

constexpr std::uint32_t kAllEngines =
    ACLSHMEM_DATA_OP_MTE | ACLSHMEM_DATA_OP_SDMA | ACLSHMEM_DATA_OP_ROCE | ACLSHMEM_DATA_OP_UDMA;

Result<Membership> join_by_attributes(const shmem_init_attr_t& attributes,
                                      const StorePlace& store) {
  if (process_state.instance == 0) {
    MEMSPAN_TRY_ASSIGN(auto launch, Launch::from_environment(), "asking the launcher");
    if (launch.has_value() &&
        (launch->rank != attributes.my_rank || launch->size != attributes.n_ranks))
      return invalid("the attributes say rank {} of {}, the launcher says rank {} of {}",
                     attributes.my_rank, attributes.n_ranks, launch->rank, launch->size);
    if (launch.has_value()) return join_launched(*launch);
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
  if (rendezvous.store.is_etcd()) rendezvous.is_store_elsewhere = true;
  return join_rendezvous(rendezvous, std::chrono::seconds(attributes.option_attr.shm_init_timeout));
}

int bad_value(const char* call, const char* what, std::int64_t value, std::string_view allowed) {
  return shmem_failure(call, SHMEM_INVALID_VALUE, "{} is {}, allowed {}", what, value, allowed);
}

constexpr std::size_t kSecretBytes = 16;
constexpr std::string_view kNoSecret = "-";

// The store of an unused unique id of this process.
struct UnusedId {
  Mutex mutex;
  std::string text MEMSPAN_GUARDED_BY(mutex);
  std::shared_ptr<StoreServer> server MEMSPAN_GUARDED_BY(mutex);
};
UnusedId& unused_id() {
  // Never destroyed: a server's thread may outlive main.
  static auto* const unused = new UnusedId;
  return *unused;
}

// 0, or what is wrong with them (in the documented order), already kept as last error.
int check_numbers(const char* call, int rank, int size, std::uint64_t bytes) {
  if (rank < 0) return bad_value(call, "my_rank", rank, "is 0 and more");
  if (size <= 0 || size > kMostPes)
    return bad_value(call, "n_ranks", size, fmt::format("are 1 to {}", kMostPes));
  if (rank >= size)
    return shmem_failure(call, SHMEM_INVALID_PARAM,
                         "my_rank is {}, allowed are 0 to {}, since n_ranks is {}", rank, size - 1,
                         size);
  if (bytes == 0) return bad_value(call, "local_mem_size", 0, "is 1 byte and more");
  return 0;
}

int check_attributes(const char* call, const shmem_init_attr_t& attributes) {
  if (int failure =
          check_numbers(call, attributes.my_rank, attributes.n_ranks, attributes.local_mem_size);
      failure != 0)
    return failure;
  const shmem_init_optional_attr_t& options = attributes.option_attr;
  for (auto [name, seconds] :
       {std::pair{"shm_init_timeout", options.shm_init_timeout},
        std::pair{"shm_create_timeout", options.shm_create_timeout},
        std::pair{"control_operation_timeout", options.control_operation_timeout}})
    if (seconds == 0) return bad_value(call, name, seconds, "is 1 second and more");
  const std::uint32_t engine = number_of(options.data_op_engine_type);
  if (engine == 0 || (engine & ~kAllEngines) != 0)
    return bad_value(call, "data_op_engine_type", engine,
                     "is any sum of MTE (1), SDMA (2), ROCE (4) and UDMA (8)");
  return 0;
}

// Joins as launched, as a job of one PE, or through `store`.
int start_by_attributes(const char* call, const shmem_init_attr_t& attributes,
                        const StorePlace& store) {
  if (int failure = check_attributes(call, attributes); failure != 0) return failure;
  Start how{call, [&] { return join_by_attributes(attributes, store); },
            [&] { return Result<HeapSize>(HeapSize{attributes.local_mem_size}); },
            std::chrono::seconds(attributes.option_attr.control_operation_timeout)};
  return shmem_result(call, start(how, Sharing::kExclusive));
}

// A unique id is, as text, the place of a store that already listens in the process that made it
// and the secret that opens it, or "-" when the program chose what protects its stores:
// "10.0.0.1:40123 0123456789abcdef0123456789abcdef".
bool is_unique_id_text(std::string_view text) {
  return text.find(' ') != std::string_view::npos;
}

// Opens the store (world/membership.h says where) and keeps it for take_unique_id(). kNotSupported
// when the text is longer than `most` bytes.
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
  UnusedId& unused = unused_id();
  MutexLock lock(unused.mutex);
  unused.text = text;
  unused.server = std::move(server);
  return text;
}

// The store's URL and secret; in the process that made the id, once also the store itself.
StorePlace take_unique_id(std::string_view text) {
  const std::size_t space = text.find(' ');
  const std::string_view secret = text.substr(space + 1);
  StorePlace store{.url = fmt::format("tcp://{}", text.substr(0, space)),
                   .secret = secret == kNoSecret ? std::string() : std::string(secret)};
  UnusedId& unused = unused_id();
  MutexLock lock(unused.mutex);
  if (unused.text == text) store.hosted = std::exchange(unused.server, nullptr);
  return store;
}

int null_failure(const char* call, const char* argument) try {
  return shmem_failure(call, SHMEM_INVALID_PARAM, std::string(argument) + " is NULL");
}
MEMSPAN_CATCH_IN(call, SHMEM_MALLOC_FAILED)

template <std::size_t kMost>
std::string_view text_in(const char (&text)[kMost]) {
  return {text, strnlen(text, kMost)};
}

template <typename UniqueId>
bool is_unique_id(const UniqueId& uid) {
  return uid.version == kVersionTag + static_cast<int>(sizeof(uid)) &&
         is_unique_id_text(text_in(uid.internal));
}

// Fills in a unique id of either generation.
template <typename UniqueId>
int make_unique_id(const char* call, UniqueId* uid) try {
  if (uid == nullptr) return null_failure(call, "uid");
  const auto text = open_unique_id(sizeof(uid->internal) - 1);
  if (!text.is_ok()) return shmem_result(call, text.status().annotate("making a unique id"));
  *uid = UniqueId{};
  uid->version = kVersionTag + static_cast<int>(sizeof(*uid));
  std::memcpy(uid->internal, text->c_str(), text->size());
  return 0;
}
MEMSPAN_CATCH_IN(call, SHMEM_MALLOC_FAILED)

// Joins by a unique id.
template <typename UniqueId>
int start_by_id(const char* call, const shmem_init_attr_t& attributes, const UniqueId& uid) {
  // Before the id is read, which takes the store away.
  if (int failure = check_attributes(call, attributes); failure != 0) return failure;
  if (!is_unique_id(uid))
    return shmem_result(call, invalid("the unique id was not made by shmem_get_uniqueid()"));
  return start_by_attributes(call, attributes, take_unique_id(text_in(uid.internal)));
}

// Converts the later structure to the early one.
shmem_init_attr_t early_form(const aclshmemx_init_attr_t& later) {
  shmem_init_attr_t early{};
  early.my_rank = later.my_pe;
  early.n_ranks = later.n_pes;
  std::memcpy(early.ip_port, later.ip_port, sizeof(early.ip_port));
  early.local_mem_size = later.local_mem_size;
  early.option_attr = later.option_attr;
  return early;
}

// PE 0 makes a unique id, and MPI carries it to the others. `communicator` may be null.
int start_by_mpi(const char* call, shmem_init_attr_t attributes, const void* communicator) {
  const auto job = MpiJob::join(communicator);
  if (!job.is_ok()) return shmem_result(call, job.status());
  // Whatever one process finds wrong, the others get an answer.
  Result<std::string> made = job->rank() == 0 ? open_unique_id(MpiJob::kMostBytes) : std::string();
  auto text = job->broadcast(made.is_ok() ? *made : std::string());
  if (!made.is_ok()) return shmem_result(call, made.status());
  if (!text.is_ok()) return shmem_result(call, text.status());
  if (!is_unique_id_text(*text))
    return shmem_failure(call, SHMEM_INNER_ERROR,
                         "rank 0 of the communicator could not open the job's store");
  if (attributes.my_rank != job->rank() || attributes.n_ranks != job->size())
    return shmem_failure(call, SHMEM_INVALID_VALUE,
                         "my_pe is {} of {} PEs, and the communicator has this process as {} of {}",
                         attributes.my_rank, attributes.n_ranks, job->rank(), job->size());
  return start_by_attributes(call, attributes, take_unique_id(*text));
}

// As the attributes say it; the job is then the current one's.
int start_as_said(const char* call, aclshmemx_bootstrap_t how, const shmem_init_attr_t& attributes,
                  void* arguments) {
  const auto* uid = static_cast<const aclshmemx_uniqueid_t*>(arguments);
  const auto place = [&] { return StorePlace{.url = std::string(text_in(attributes.ip_port))}; };
  switch (how) {
    case ACLSHMEMX_INIT_WITH_DEFAULT:
      if (uid != nullptr && !Endpoint::parse(text_in(attributes.ip_port)).is_ok())
        return start_by_id(call, attributes, *uid);
      return start_by_attributes(call, attributes, place());
    case ACLSHMEMX_INIT_WITH_UNIQUEID:
      return uid == nullptr ? null_failure(call, "comm_args") : start_by_id(call, attributes, *uid);
    case ACLSHMEMX_INIT_WITH_MPI:
      return start_by_mpi(call, attributes, arguments);
    default:
      return shmem_failure(
          call, SHMEM_INVALID_VALUE,
          "bootstrap_flags is {}, allowed are 1 (an address), 2 (MPI) and 8 (a unique id)",
          static_cast<int>(how));
  }
}

constexpr std::uint32_t kLeastStaging = 128;

int check_staging(const char* call, std::uint32_t bytes) try {
  if (bytes >= kLeastStaging) return 0;
  return shmem_failure(call, SHMEM_INVALID_VALUE, "ub_size is {}, allowed are {} bytes and more",
                       bytes, kLeastStaging);
}
MEMSPAN_CATCH_IN(call, SHMEM_MALLOC_FAILED)

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int shmem_set_attr(int my_rank, int n_ranks, uint64_t local_mem_size,
                                  const char* ip_port, shmem_init_attr_t** attributes) try {
  if (attributes == nullptr) return null_failure(__func__, "attributes");
  *attributes = nullptr;
  shmem_init_attr_t made{};
  made.my_rank = my_rank;
  made.n_ranks = n_ranks;
  made.local_mem_size = local_mem_size;
  made.option_attr.version = kVersionTag + static_cast<int>(sizeof(made.option_attr));
  made.option_attr.data_op_engine_type = SHMEM_DATA_OP_MTE;
  made.option_attr.sockFd = -1;
  shmem_set_timeout(&made, kDefaultTimeoutSeconds);
  std::string_view place = ip_port == nullptr ? "" : ip_port;
  if (place.size() >= sizeof(made.ip_port))
    return shmem_failure(__func__, SHMEM_INVALID_VALUE,
                         "ip_port has {} characters, allowed are up to 63", place.size());
  std::memcpy(made.ip_port, place.data(), place.size());
  if (int failure = check_attributes(__func__, made); failure != 0) return failure;
  static shmem_init_attr_t kept;
  kept = made;
  *attributes = &kept;
  return 0;
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int shmem_set_data_op_engine_type(shmem_init_attr_t* attributes,
                                                 data_op_engine_type_t value) {
  if (attributes == nullptr) return null_failure(__func__, "attributes");
  // By bytes: C++ knows fewer values of the enumeration than C, and checks come with the use.
  std::memcpy(&attributes->option_attr.data_op_engine_type, &value, sizeof value);
  return 0;
}

MEMSPAN_EXPORT int shmem_set_timeout(shmem_init_attr_t* attributes, uint32_t value) {
  if (attributes == nullptr) return null_failure(__func__, "attributes");
  attributes->option_attr.shm_init_timeout = value;
  attributes->option_attr.shm_create_timeout = value;
  attributes->option_attr.control_operation_timeout = value;
  return 0;
}

MEMSPAN_EXPORT int shmem_init_attr(shmem_init_attr_t* attributes) try {
  if (attributes == nullptr) return null_failure(__func__, "attributes");
  return start_by_attributes(__func__, *attributes,
                             StorePlace{.url = std::string(text_in(attributes->ip_port))});
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int aclshmemx_init_attr(aclshmemx_bootstrap_t bootstrap_flags,
                                       aclshmemx_init_attr_t* attributes) try {
  if (attributes == nullptr) return null_failure(__func__, "attributes");
  shmem_init_attr_t early = early_form(*attributes);
  // Earlier attributes end before it: a number out of range does not request an instance.
  const std::uint64_t wish = attributes->instance_id;
  const std::uint64_t number = wish <= kMostInstance ? wish : process_state.instance;
  if (number != process_state.instance && has_instance(number)) {
    log_line(LogLevel::kWarn, fmt::format("{}: there is an instance {} already", __func__, number));
    return switch_instance(__func__, number);
  }
  if (int failure = complete_place(__func__, number, early); failure != 0) return failure;
  const std::uint64_t last = process_state.instance;
  if (int failure = switch_instance(__func__, number); failure != 0) return failure;
  const int failure = start_as_said(__func__, bootstrap_flags, early, attributes->comm_args);
  if (failure != 0) choose_instance(last);
  return failure;
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int shmem_get_uniqueid(shmem_uniqueid_t* uid) {
  return make_unique_id(__func__, uid);
}

MEMSPAN_EXPORT int aclshmemx_get_uniqueid(aclshmemx_uniqueid_t* uid) {
  return make_unique_id(__func__, uid);
}

MEMSPAN_EXPORT int shmem_set_attr_uniqueid_args(int rank_id, int nranks,
                                                const shmem_uniqueid_t* uid,
                                                shmem_init_attr_t* attr) try {
  if (uid == nullptr) return null_failure(__func__, "uid");
  if (attr == nullptr) return null_failure(__func__, "attr");
  shmem_init_attr_t filled = *attr;
  filled.my_rank = rank_id;
  filled.n_ranks = nranks;
  if (int failure = check_attributes(__func__, filled); failure != 0) return failure;
  *attr = filled;
  return start_by_id(__func__, filled, *uid);
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int aclshmemx_set_attr_uniqueid_args(int my_pe, int n_pes, int64_t local_mem_size,
                                                    aclshmemx_uniqueid_t* uid,
                                                    aclshmemx_init_attr_t* aclshmem_attr) try {
  if (uid == nullptr) return null_failure(__func__, "uid");
  if (aclshmem_attr == nullptr) return null_failure(__func__, "aclshmem_attr");
  if (local_mem_size < 0)
    return shmem_failure(__func__, SHMEM_INVALID_VALUE,
                         "local_mem_size is {}, allowed is 1 byte and more", local_mem_size);
  const auto bytes = static_cast<std::uint64_t>(local_mem_size);
  if (int failure = check_numbers(__func__, my_pe, n_pes, bytes); failure != 0) return failure;
  if (!is_unique_id(*uid))
    return shmem_failure(__func__, SHMEM_INVALID_PARAM,
                         "the unique id was not made by aclshmemx_get_uniqueid()");
  // Callers may have it on a stack that is gone when the job starts.
  static aclshmemx_uniqueid_t kept;
  kept = *uid;
  kept.my_pe = my_pe;
  kept.n_pes = n_pes;
  aclshmem_attr->my_pe = my_pe;
  aclshmem_attr->n_pes = n_pes;
  aclshmem_attr->local_mem_size = bytes;
  aclshmem_attr->comm_args = &kept;
  return 0;
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int shmem_init_status(void) {
  return is_started() ? SHMEM_STATUS_IS_INITIALIZED : SHMEM_STATUS_NOT_INITIALIZED;
}

MEMSPAN_EXPORT int aclshmemx_init_status(void) __attribute__((alias("shmem_init_status")));

MEMSPAN_EXPORT void aclshmem_global_exit(int status) try {
  require_started("shmem_global_exit");
  end_job(status);
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_EXPORT void aclshmem_info_get_version(int* major, int* minor) {
  if (major != nullptr) *major = SHMEM_MAJOR_VERSION;
  if (minor != nullptr) *minor = SHMEM_MINOR_VERSION;
}

MEMSPAN_EXPORT void aclshmem_info_get_name(char* name) {
  if (name != nullptr) std::memcpy(name, kName, std::strlen(kName) + 1);
}

MEMSPAN_EXPORT int32_t shmem_set_conf_store_tls(bool enable, const char* tls_info,
                                                const uint32_t tls_info_len) try {
  return shmem_result(__func__, choose_tls(enable, GivenText{"tls_info", tls_info, tls_info_len}));
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t aclshmemx_set_conf_store_tls(bool enable, const char* tls_info,
                                                    const uint32_t tls_info_len) try {
  return shmem_result(__func__, choose_tls(enable, GivenText{"tls_info", tls_info, tls_info_len}));
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t
shmem_register_decrypt_handler(const shmem_decrypt_handler decrypt_handler) try {
  give_tls_decryption(decrypt_handler);
  return 0;
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t shmem_set_config_store_tls_key(
    const char* tls_pk, const uint32_t tls_pk_len, const char* tls_pk_pw,
    const uint32_t tls_pk_pw_len, const shmem_decrypt_handler decrypt_handler) try {
  return shmem_result(
      __func__, give_tls_key(GivenText{"tls_pk", tls_pk, tls_pk_len},
                             GivenText{"tls_pk_pw", tls_pk_pw, tls_pk_pw_len}, decrypt_handler));
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t aclshmemx_set_config_store_tls_key(
    const char* tls_pk, const uint32_t tls_pk_len, const char* tls_pk_pw,
    const uint32_t tls_pk_pw_len, const aclshmem_decrypt_handler decrypt_handler)
    __attribute__((alias("shmem_set_config_store_tls_key")));

MEMSPAN_EXPORT int32_t aclshmemx_set_extern_logger(void (*func)(int level, const char* msg))
    __attribute__((alias("shmem_set_extern_logger")));
MEMSPAN_EXPORT int32_t aclshmemx_set_log_level(int level)
    __attribute__((alias("shmem_set_log_level")));

MEMSPAN_EXPORT int32_t shmem_set_extern_logger(void (*func)(int level, const char* msg)) {
  set_log_sink(func);
  return 0;
}

MEMSPAN_EXPORT int32_t shmem_set_log_level(int level) try {
  if (level < 0 || level > static_cast<int>(LogLevel::kFatal))
    return shmem_failure("shmem_set_log_level", SHMEM_INVALID_PARAM,
                         "level is {}, allowed are 0 to 4", level);
  set_log_level(static_cast<LogLevel>(level));
  return 0;
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

// ---- settings that mean something on CANN's chips only

MEMSPAN_EXPORT int aclshmemx_set_mte_config(uint64_t, uint32_t, uint32_t) {
  return 0;
}
MEMSPAN_EXPORT int aclshmemx_set_sdma_config(uint64_t, uint32_t, uint32_t)
    __attribute__((alias("aclshmemx_set_mte_config")));
MEMSPAN_EXPORT int aclshmemx_set_rdma_config(uint64_t, uint32_t ub_size, uint32_t) {
  return check_staging(__func__, ub_size);
}
MEMSPAN_EXPORT int aclshmemx_set_udma_config(uint64_t, uint32_t ub_size, uint32_t) {
  return check_staging(__func__, ub_size);
}
MEMSPAN_EXPORT int shmem_mte_set_ub_params(uint64_t, uint32_t, uint32_t)
    __attribute__((alias("aclshmemx_set_mte_config")));
MEMSPAN_EXPORT uint64_t util_get_ffts_config(void) {
  return 0;
}
MEMSPAN_EXPORT uint64_t shmemx_get_ffts_config(void) __attribute__((alias("util_get_ffts_config")));
