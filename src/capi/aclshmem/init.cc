// SPDX-License-Identifier: Apache-2.0
// Start by attributes or a unique id, end, and settings before the start.
#include <fmt/format.h>

#include <climits>
#include <cstring>

#include "capi/aclshmem/attributes.h"
#include "capi/errors.h"
#include "capi/failures.h"
#include "capi/process_state.h"
#include "capi/store_security.h"
#include "world/mpi_job.h"

namespace memspan::capi {
namespace {

constexpr int kVersionTag = 1 << 16;
constexpr const char* kName = "SHMEM v1.1.1";

int null_argument(const char* call, const char* argument) {
  return shmem_failure(call, SHMEM_INVALID_PARAM, std::string(argument) + " is NULL");
}

template <typename UniqueId>
bool is_unique_id(const UniqueId& uid) {
  return uid.version == kVersionTag + static_cast<int>(sizeof(uid)) &&
         is_unique_id_text({uid.internal, strnlen(uid.internal, sizeof(uid.internal))});
}

// Fills in a unique id of either generation.
template <typename UniqueId>
Status make_unique_id(UniqueId* uid) {
  MEMSPAN_TRY_ASSIGN(const std::string text, open_unique_id(sizeof(uid->internal) - 1),
                     "making a unique id");
  *uid = UniqueId{};
  uid->version = kVersionTag + static_cast<int>(sizeof(*uid));
  std::memcpy(uid->internal, text.c_str(), text.size());
  return Status::ok();
}

template <typename UniqueId>
Result<StorePlace> read_unique_id(const UniqueId& uid) {
  if (!is_unique_id(uid))
    return Status(Code::kInvalidArgument, "the unique id was not made by shmem_get_uniqueid()");
  return take_unique_id({uid.internal, strnlen(uid.internal, sizeof(uid.internal))});
}

template <typename Attributes>
std::string_view place_of(const Attributes& attributes) {
  return {attributes.ip_port, strnlen(attributes.ip_port, sizeof(attributes.ip_port))};
}

// Joins by a unique id.
template <typename UniqueId>
int start_by_id(const char* call, const shmem_init_attr_t& attributes, const UniqueId& uid) {
  // Before the id is read, which takes the store away.
  if (int failure = check_attributes(call, attributes); failure != 0) return failure;
  auto store = read_unique_id(uid);
  if (!store.is_ok()) return shmem_result(call, store.status());
  return start_by_attributes(call, attributes, *store);
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
    return shmem_failure(
        call, SHMEM_INVALID_VALUE,
        fmt::format("my_pe is {} of {} PEs, and the communicator has this process "
                    "as {} of {}",
                    attributes.my_rank, attributes.n_ranks, job->rank(), job->size()));
  return start_by_attributes(call, attributes, take_unique_id(*text));
}

// As the attributes say it; the job is then the current one's.
int start_as_said(const char* call, aclshmemx_bootstrap_t how, const shmem_init_attr_t& attributes,
                  void* arguments) {
  const auto* uid = static_cast<const aclshmemx_uniqueid_t*>(arguments);
  const auto place = [&] { return StorePlace{.url = std::string(place_of(attributes))}; };
  switch (how) {
    case ACLSHMEMX_INIT_WITH_DEFAULT:
      if (uid != nullptr && !Endpoint::parse(place_of(attributes)).is_ok())
        return start_by_id(call, attributes, *uid);
      return start_by_attributes(call, attributes, place());
    case ACLSHMEMX_INIT_WITH_UNIQUEID:
      return uid == nullptr ? null_argument(call, "comm_args")
                            : start_by_id(call, attributes, *uid);
    case ACLSHMEMX_INIT_WITH_MPI:
      return start_by_mpi(call, attributes, arguments);
    default:
      return shmem_failure(
          call, SHMEM_INVALID_VALUE,
          fmt::format("bootstrap_flags is {}, allowed are 1 (an address), 2 (MPI) and "
                      "8 (a unique id)",
                      static_cast<int>(how)));
  }
}

constexpr std::uint32_t kLeastStaging = 128;

int check_staging(const char* call, std::uint32_t bytes) {
  if (bytes >= kLeastStaging) return 0;
  return shmem_failure(
      call, SHMEM_INVALID_VALUE,
      fmt::format("ub_size is {}, allowed are {} bytes and more", bytes, kLeastStaging));
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int shmem_set_attr(int my_rank, int n_ranks, uint64_t local_mem_size,
                                  const char* ip_port, shmem_init_attr_t** attributes) try {
  constexpr const char* kCall = "shmem_set_attr";
  if (attributes == nullptr) return null_argument(kCall, "attributes");
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
    return shmem_failure(
        kCall, SHMEM_INVALID_VALUE,
        "ip_port has " + std::to_string(place.size()) + " characters, allowed are up to 63");
  std::memcpy(made.ip_port, place.data(), place.size());
  if (int failure = check_attributes(kCall, made); failure != 0) return failure;
  static shmem_init_attr_t kept;
  kept = made;
  *attributes = &kept;
  return 0;
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int shmem_set_data_op_engine_type(shmem_init_attr_t* attributes,
                                                 data_op_engine_type_t value) try {
  if (attributes == nullptr) return null_argument("shmem_set_data_op_engine_type", "attributes");
  // By bytes: C++ knows fewer values of the enumeration than C, and checks come with the use.
  std::memcpy(&attributes->option_attr.data_op_engine_type, &value, sizeof value);
  return 0;
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int shmem_set_timeout(shmem_init_attr_t* attributes, uint32_t value) try {
  if (attributes == nullptr) return null_argument("shmem_set_timeout", "attributes");
  attributes->option_attr.shm_init_timeout = value;
  attributes->option_attr.shm_create_timeout = value;
  attributes->option_attr.control_operation_timeout = value;
  return 0;
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int shmem_init_attr(shmem_init_attr_t* attributes) try {
  if (attributes == nullptr) return null_argument("shmem_init_attr", "attributes");
  return start_by_attributes("shmem_init_attr", *attributes,
                             StorePlace{.url = std::string(place_of(*attributes))});
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int aclshmemx_init_attr(aclshmemx_bootstrap_t bootstrap_flags,
                                       aclshmemx_init_attr_t* attributes) try {
  constexpr const char* kCall = "aclshmemx_init_attr";
  if (attributes == nullptr) return null_argument(kCall, "attributes");
  shmem_init_attr_t early = early_form(*attributes);
  // Earlier attributes end before it: a number out of range does not request an instance.
  const std::uint64_t wish = attributes->instance_id;
  const std::uint64_t number = wish <= kMostInstance ? wish : process_state.instance;
  if (number != process_state.instance && has_instance(number)) {
    log_line(LogLevel::kWarn, fmt::format("{}: there is an instance {} already", kCall, number));
    return switch_instance(kCall, number);
  }
  if (int failure = complete_place(kCall, number, early); failure != 0) return failure;
  const std::uint64_t last = process_state.instance;
  if (int failure = switch_instance(kCall, number); failure != 0) return failure;
  const int failure = start_as_said(kCall, bootstrap_flags, early, attributes->comm_args);
  if (failure != 0) choose_instance(last);
  return failure;
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int shmem_get_uniqueid(shmem_uniqueid_t* uid) try {
  if (uid == nullptr) return null_argument("shmem_get_uniqueid", "uid");
  return shmem_result("shmem_get_uniqueid", make_unique_id(uid));
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int aclshmemx_get_uniqueid(aclshmemx_uniqueid_t* uid) try {
  if (uid == nullptr) return null_argument("aclshmemx_get_uniqueid", "uid");
  return shmem_result("aclshmemx_get_uniqueid", make_unique_id(uid));
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int shmem_set_attr_uniqueid_args(int rank_id, int nranks,
                                                const shmem_uniqueid_t* uid,
                                                shmem_init_attr_t* attr) try {
  constexpr const char* kCall = "shmem_set_attr_uniqueid_args";
  if (uid == nullptr) return null_argument(kCall, "uid");
  if (attr == nullptr) return null_argument(kCall, "attr");
  shmem_init_attr_t filled = *attr;
  filled.my_rank = rank_id;
  filled.n_ranks = nranks;
  if (int failure = check_attributes(kCall, filled); failure != 0) return failure;
  *attr = filled;
  return start_by_id(kCall, filled, *uid);
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int aclshmemx_set_attr_uniqueid_args(int my_pe, int n_pes, int64_t local_mem_size,
                                                    aclshmemx_uniqueid_t* uid,
                                                    aclshmemx_init_attr_t* aclshmem_attr) try {
  constexpr const char* kCall = "aclshmemx_set_attr_uniqueid_args";
  if (uid == nullptr) return null_argument(kCall, "uid");
  if (aclshmem_attr == nullptr) return null_argument(kCall, "aclshmem_attr");
  if (local_mem_size < 0)
    return shmem_failure(
        kCall, SHMEM_INVALID_VALUE,
        fmt::format("local_mem_size is {}, allowed is 1 byte and more", local_mem_size));
  const auto bytes = static_cast<std::uint64_t>(local_mem_size);
  if (int failure = check_numbers(kCall, my_pe, n_pes, bytes); failure != 0) return failure;
  if (!is_unique_id(*uid))
    return shmem_failure(kCall, SHMEM_INVALID_PARAM,
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
  return shmem_result("shmem_set_conf_store_tls",
                      choose_tls(enable, GivenText{"tls_info", tls_info, tls_info_len}));
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t aclshmemx_set_conf_store_tls(bool enable, const char* tls_info,
                                                    const uint32_t tls_info_len) try {
  return shmem_result("aclshmemx_set_conf_store_tls",
                      choose_tls(enable, GivenText{"tls_info", tls_info, tls_info_len}));
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
      "shmem_set_config_store_tls_key",
      give_tls_key(GivenText{"tls_pk", tls_pk, tls_pk_len},
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
                         "level is " + std::to_string(level) + ", allowed are 0 to 4");
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
MEMSPAN_EXPORT int aclshmemx_set_rdma_config(uint64_t, uint32_t ub_size, uint32_t) try {
  return check_staging("aclshmemx_set_rdma_config", ub_size);
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)
MEMSPAN_EXPORT int aclshmemx_set_udma_config(uint64_t, uint32_t ub_size, uint32_t) try {
  return check_staging("aclshmemx_set_udma_config", ub_size);
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)
MEMSPAN_EXPORT int shmem_mte_set_ub_params(uint64_t, uint32_t, uint32_t)
    __attribute__((alias("aclshmemx_set_mte_config")));
MEMSPAN_EXPORT uint64_t util_get_ffts_config(void) {
  return 0;
}
MEMSPAN_EXPORT uint64_t shmemx_get_ffts_config(void) __attribute__((alias("util_get_ffts_config")));
