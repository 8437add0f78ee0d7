// SPDX-License-Identifier: Apache-2.0
#include "capi/store_security.h"

#include <optional>
#include <utility>

#include "core/mutex.h"

namespace memspan::capi {
namespace {

struct Choice {
  Mutex mutex;
  std::optional<StoreSecurity> security MEMSPAN_GUARDED_BY(mutex);  // none: nothing was said
  std::string key MEMSPAN_GUARDED_BY(mutex);
  std::string password MEMSPAN_GUARDED_BY(mutex);
  DecryptPassword decrypt MEMSPAN_GUARDED_BY(mutex);
};

Choice& choice() {
  // Never destroyed: threads may outlive main.
  static auto* const made = new Choice;
  return *made;
}

}  // namespace

Status choose_tls(bool enable, std::string_view tls_info) {
  StoreSecurity security;
  security.kind = enable ? StoreSecurity::Kind::kCertificates : StoreSecurity::Kind::kPlain;
  if (enable) {
    auto certificates = parse_tls_info(tls_info);
    if (!certificates.is_ok()) return certificates.status();
    security.certificates = std::move(certificates).value();
  }
  MutexLock lock(choice().mutex);
  choice().security = std::move(security);
  return Status::ok();
}

void give_tls_key(std::string_view key, std::string_view password) {
  MutexLock lock(choice().mutex);
  choice().key = key;
  choice().password = password;
}

void give_tls_decryption(DecryptPassword decrypt) {
  MutexLock lock(choice().mutex);
  choice().decrypt = std::move(decrypt);
}

Result<StoreSecurity> chosen_security() {
  {
    MutexLock lock(choice().mutex);
    if (choice().security) {
      StoreSecurity security = *choice().security;
      StoreCertificates& files = security.certificates;
      if (!choice().key.empty()) files.key = PemSource{.text = choice().key};
      if (!choice().password.empty()) files.password = PemSource{.text = choice().password};
      files.decrypt = choice().decrypt;
      return security;
    }
  }
  return security_from_environment();
}

}  // namespace memspan::capi
