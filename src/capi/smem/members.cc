// SPDX-License-Identifier: Apache-2.0
#include "capi/smem/members.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <vector>

#include "capi/smem/fork_aware_singleton.h"
#include "capi/smem/result.h"
#include "capi/store_security.h"
#include "store/server.h"

namespace memspan::capi {
namespace {

// One store's. `connecting` is held while connecting, so that two threads make one connection, and
// taken before Places::mutex, which guards `member`.
struct Place {
  Mutex connecting;
  std::weak_ptr<Member> member;
  std::atomic<bool> may_host{false};  // a caller has allowed it
};

// The mutex is held for moments, so that a fork() can wait for it.
struct Places {
  Mutex mutex;
  bool is_held_for_fork MEMSPAN_GUARDED_BY(mutex) = false;
  std::vector<std::shared_ptr<Member>> kept_in_child;
  // Shared with the threads that use one now.
  std::map<std::string, std::shared_ptr<Place>> by_address MEMSPAN_GUARDED_BY(mutex);

  std::shared_ptr<Place> at(const std::string& address) MEMSPAN_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    auto& place = by_address[address];
    if (place == nullptr) place = std::make_shared<Place>();
    return place;
  }
  std::shared_ptr<Member> member_of(const Place& place) MEMSPAN_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    return place.member.lock();
  }
  void set_member(Place& place, const std::shared_ptr<Member>& member) MEMSPAN_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    place.member = member;
  }
  std::vector<std::shared_ptr<Member>> members() MEMSPAN_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    return living();
  }
  std::vector<std::shared_ptr<Member>> living() MEMSPAN_REQUIRES(mutex) {
    std::vector<std::shared_ptr<Member>> all;
    for (const auto& [address, place] : by_address)
      if (auto member = place->member.lock()) all.push_back(std::move(member));
    return all;
  }

  void before_fork() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
    mutex.lock();
    is_held_for_fork = true;
  }
  void after_fork() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
    // Made while the fork began.
    if (std::exchange(is_held_for_fork, false)) mutex.unlock();
  }
  // The child never destroys the members, because their threads do not exist in it.
  void forget_in_child() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
    if (!is_held_for_fork) return;
    kept_in_child = living();
    for (const auto& member : kept_in_child) member->forget_in_child();
  }
};

// At the end of the process: the threads of connections end before OpenSSL does, and the other
// members learn at once that this one is gone. Memory stays as it is.
void end_all_members() {
  for (const auto& member : fork_aware_singleton<Places>().members()) member->store().end();
}

bool is_of_use(Member& member, AfterLoss after_loss) {
  if (after_loss == AfterLoss::kReconnects) return true;
  constexpr auto kPatience = std::chrono::seconds(5);
  return member.store().get_now("memspan", Deadline::after(kPatience)).code() == Code::kNotFound;
}

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

Status create_store(const char* url) {
  MEMSPAN_PASS_ASSIGN(const auto address, read_url(url));
  MEMSPAN_PASS_ASSIGN(const auto security, chosen_security());
  return host_store(address, security);
}

Status destroy_store(const char* url) {
  MEMSPAN_PASS_ASSIGN(const auto address, read_url(url));
  if (address.is_etcd()) return Status::ok();
  decltype(Hosted::servers)::node_type server;  // ends without the lock
  MutexLock lock(hosted().mutex);
  server = hosted().servers.extract(address.to_string());
  if (server.empty())
    return {Code::kNotFound, fmt::format("this process hosts no store at {}", url)};
  hosted().ended.insert(address.to_string());
  return Status::ok();
}

Result<std::string> read_path(const char* field, const char (&text)[SMEM_TLS_PATH_SIZE],
                              bool is_needed) {
  const void* const end = std::memchr(text, '\0', sizeof text);
  if (end == nullptr) return invalid("{} has no end within {} bytes", field, sizeof text);
  if (is_needed && text[0] == '\0') return invalid("{} is empty, but tlsEnable is true", field);
  return std::string(text);
}

// Calls the function that a library exports. The function ends its result with a zero, and does not
// return the length.
DecryptPassword decryption_by(const std::string& path) {
  return [path](std::string_view cipher) -> Result<std::string> {
    // Kept loaded: the function may have registered something.
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const function = library == nullptr ? nullptr : ::dlsym(library, "DecryptPassword");
    if (function == nullptr)
      return invalid("decrypterLibPath {} gives no DecryptPassword: {}", path, ::dlerror());
    auto* const decrypt =
        reinterpret_cast<int (*)(const char*, std::size_t, char*, std::size_t)>(function);
    return decrypted("DecryptPassword of " + path, [&](char* plain, std::size_t& length) {
      const std::string text(cipher);
      const int failure = decrypt(text.c_str(), text.size(), plain, length);
      length = std::strlen(plain);
      return failure;
    });
  };
}

}  // namespace

Result<std::shared_ptr<Member>> member_at(const char* url, Hosting hosting, AfterLoss after_loss,
                                          std::optional<StoreSecurity> security,
                                          Deadline deadline) {
  MEMSPAN_PASS_ASSIGN(auto endpoint, read_url(url));
  Places& places = fork_aware_singleton<Places>();
  const bool reconnects = after_loss == AfterLoss::kReconnects;
  const std::shared_ptr<Place> place =
      places.at(endpoint.to_string() + (reconnects ? " for good" : ""));
  MutexLock connecting(place->connecting);
  if (hosting == Hosting::kWhenPossible) place->may_host = true;
  if (auto member = places.member_of(*place); member != nullptr && is_of_use(*member, after_loss))
    return member;
  if (!security) {
    MEMSPAN_PASS_ASSIGN(security, chosen_security());
  }
  Status hosted;
  if (hosting == Hosting::kWhenPossible) hosted = host_store(endpoint, *security);
  // No other attempt can fix an error in our own certificates.
  if (hosted.code() == Code::kInvalidArgument) return hosted;
  // Again while no store answers: the listener that has the port now may be a store that is ending.
  const StoreAccess access{.endpoint = endpoint,
                           .security = *security,
                           .member = fmt::format("process {}", ::getpid()),
                           .before_attempt = [place, address = endpoint, security = *security] {
                             if (place->may_host)
                               static_cast<void>(host_store_again(address, security));
                           }};
  auto member = Member::join(access, after_loss, deadline);
  if (!member.is_ok()) {
    if (hosted.is_ok() || hosted.code() == Code::kUnavailable ||
        hosted.code() == Code::kUnreachable)
      return member.status();
    return Status(member.code(), fmt::format("{} (and hosting it here failed: {})",
                                             member.status().message(), hosted.message()));
  }
  places.set_member(*place, *member);
  [[maybe_unused]] static const int registered = std::atexit(end_all_members);
  return member;
}

Result<StoreAddress> read_url(const char* url) {
  if (url == nullptr || *url == '\0')
    return invalid("invalid param, storeURL is {}", url == nullptr ? "null" : "empty");
  auto address = StoreAddress::parse(url);
  if (address.is_ok() && address->first().port == 0)
    return invalid(
        "invalid param, storeURL is {}: the port is 0, allowed are 1 to 65535, which the clients "
        "have to know",
        url);
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

Result<std::optional<StoreSecurity>> security_of(const smem_tls_config& config) {
  if (!config.tlsEnable) return std::optional<StoreSecurity>();
  StoreSecurity security{.kind = StoreSecurity::Kind::kCertificates};
  StoreCertificates& files = security.certificates;
  constexpr const char* kDoing = "storeTlsConfig";
  MEMSPAN_TRY_ASSIGN(std::string authority, read_path("caPath", config.caPath, true), kDoing);
  files.authorities.push_back(std::move(authority));
  MEMSPAN_TRY_ASSIGN(files.certificate, read_path("certPath", config.certPath, true), kDoing);
  MEMSPAN_TRY_ASSIGN(files.key.path, read_path("keyPath", config.keyPath, true), kDoing);
  MEMSPAN_TRY_ASSIGN(std::string list, read_path("crlPath", config.crlPath, false), kDoing);
  if (!list.empty()) files.revocations.push_back(std::move(list));
  MEMSPAN_TRY_ASSIGN(files.password.path, read_path("keyPassPath", config.keyPassPath, false),
                     kDoing);
  MEMSPAN_TRY_ASSIGN(std::string decrypter,
                     read_path("decrypterLibPath", config.decrypterLibPath, false), kDoing);
  if (!decrypter.empty()) files.decrypt = decryption_by(decrypter);
  return std::optional<StoreSecurity>(std::move(security));
}

}  // namespace memspan::capi

using namespace memspan::capi;

MEMSPAN_EXPORT int32_t smem_create_config_store(const char* storeUrl) try {
  return smem_result(__func__, create_store(storeUrl), SMEM_RES_IN_USE);
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t smem_destroy_config_store(const char* storeUrl) try {
  return smem_result(__func__, destroy_store(storeUrl));
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t smem_set_conf_store_tls(bool enable, const char* tls_info,
                                               const uint32_t tls_info_len) try {
  return smem_result(__func__, choose_tls(enable, GivenText{"tls_info", tls_info, tls_info_len}));
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t smem_set_config_store_tls_key(const char* tls_pk, const uint32_t tls_pk_len,
                                                     const char* tls_pk_pw,
                                                     const uint32_t tls_pk_pw_len,
                                                     const smem_decrypt_handler h) try {
  return smem_result(__func__, give_tls_key(GivenText{"tls_pk", tls_pk, tls_pk_len},
                                            GivenText{"tls_pk_pw", tls_pk_pw, tls_pk_pw_len}, h));
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)
