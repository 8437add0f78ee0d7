// SPDX-License-Identifier: Apache-2.0
// Stores that this process hosts because the program asked for them, and how stores are protected.
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "capi/smem/config_store.h"
#include "capi/smem/fork_aware_singleton.h"
#include "capi/smem/result.h"
#include "capi/store_security.h"
#include "core/mutex.h"
#include "store/server.h"
#include "store/store_address.h"

namespace memspan::capi {
namespace {

// By the address as it was given: two ways to write one are two, and the second finds it taken.
struct Hosted {
  Mutex mutex;
  std::map<std::string, std::unique_ptr<StoreServer>> servers MEMSPAN_GUARDED_BY(mutex);
  std::set<std::string> ended MEMSPAN_GUARDED_BY(mutex);  // by the program, and not begun again
  std::set<std::string> users MEMSPAN_GUARDED_BY(mutex);
};

// fork() copied the servers, but neither their threads nor what listening is worth.
Hosted& hosted() {
  return fork_aware_singleton<Hosted>();
}

void end_all_servers() {
  std::map<std::string, std::unique_ptr<StoreServer>> servers;  // declared first: ends unlocked
  MutexLock lock(hosted().mutex);
  servers.swap(hosted().servers);
}

std::int32_t create_store(const char* call, const char* url) {
  const auto endpoint = read_url(url);
  if (!endpoint.is_ok()) return smem_result(call, endpoint.status());
  auto security = chosen_security();
  if (!security.is_ok()) return smem_result(call, security.status());
  const Status status = host_store(*endpoint, *security);
  if (status.code() == Code::kUnavailable)
    return smem_failure(call, SMEM_RES_IN_USE, status.message());
  return smem_result(call, status);
}

std::int32_t destroy_store(const char* call, const char* url) {
  const auto endpoint = read_url(url);
  if (!endpoint.is_ok()) return smem_result(call, endpoint.status());
  if (endpoint->is_etcd()) return SMEM_OK;
  std::unique_ptr<StoreServer> server;  // ends without the lock
  {
    MutexLock lock(hosted().mutex);
    auto found = hosted().servers.find(endpoint->to_string());
    if (found == hosted().servers.end())
      return smem_failure(call, SMEM_NOT_EXIST,
                          fmt::format("this process hosts no store at {}", url));
    server = std::move(found->second);
    hosted().servers.erase(found);
    hosted().ended.insert(endpoint->to_string());
  }
  return SMEM_OK;
}

}  // namespace

Result<StoreAddress> read_url(const char* url) {
  if (url == nullptr || *url == '\0')
    return invalid(fmt::format("invalid param, storeURL is {}", url == nullptr ? "null" : "empty"));
  auto address = StoreAddress::parse(url);
  if (address.is_ok() && address->first().port == 0)
    return invalid(
        fmt::format("invalid param, storeURL is {}: the port is 0, allowed are 1 to 65535, "
                    "which the clients have to know",
                    url));
  return address;
}

Status host_store(const StoreAddress& address, const StoreSecurity& security) {
  {
    MutexLock lock(hosted().mutex);
    hosted().ended.erase(address.to_string());
  }
  return host_store_again(address, security);
}

Status host_store_again(const StoreAddress& address, const StoreSecurity& security) {
  const std::string url = address.to_string();
  if (address.is_etcd()) return Status::ok();
  MEMSPAN_PASS(address.check_may_be_hosted());
  MutexLock lock(hosted().mutex);
  if (hosted().ended.contains(url)) return Status::ok();
  if (hosted().servers.contains(url)) return Status::ok();
  MEMSPAN_PASS_ASSIGN(
      auto server, StoreServer::listen(address.first(), StoreServerOptions{.security = security}));
  hosted().servers.emplace(url, std::move(server));
  // Their threads end before what they use does, and what they published goes. Only now, so that
  // the handler comes before those that this server brought about (OpenSSL's).
  [[maybe_unused]] static const int registered = std::atexit(end_all_servers);
  return Status::ok();
}

void start_using_stores(const char* part) {
  MutexLock lock(hosted().mutex);
  hosted().users.insert(part);
}

void stop_using_stores(const char* part) {
  std::map<std::string, std::unique_ptr<StoreServer>> servers;  // declared first: ends unlocked
  MutexLock lock(hosted().mutex);
  if (hosted().users.erase(part) == 0 || !hosted().users.empty()) return;
  servers.swap(hosted().servers);
}

}  // namespace memspan::capi

using namespace memspan::capi;

MEMSPAN_EXPORT int32_t smem_create_config_store(const char* storeUrl) try {
  return create_store("smem_create_config_store", storeUrl);
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t smem_destroy_config_store(const char* storeUrl) try {
  return destroy_store("smem_destroy_config_store", storeUrl);
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t smem_set_conf_store_tls(bool enable, const char* tls_info,
                                               const uint32_t tls_info_len) try {
  return smem_result("smem_set_conf_store_tls",
                     choose_tls(enable, GivenText{"tls_info", tls_info, tls_info_len}));
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t smem_set_config_store_tls_key(const char* tls_pk, const uint32_t tls_pk_len,
                                                     const char* tls_pk_pw,
                                                     const uint32_t tls_pk_pw_len,
                                                     const smem_decrypt_handler h) try {
  return smem_result("smem_set_config_store_tls_key",
                     give_tls_key(GivenText{"tls_pk", tls_pk, tls_pk_len},
                                  GivenText{"tls_pk_pw", tls_pk_pw, tls_pk_pw_len}, h));
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)
