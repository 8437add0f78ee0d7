// SPDX-License-Identifier: Apache-2.0
#include "capi/store_security.h"

#include "capi/errors.h"
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

constexpr std::uint32_t kMostTextBytes = 10 << 10;
// Room for what a decrypt handler writes.
constexpr std::size_t kMostPasswordBytes = 4096;

Result<std::string_view> check(const GivenText& text) {
  if (text.length > kMostTextBytes)
    return invalid("{} has {} bytes, at most {} are allowed", text.name, text.length,
                   kMostTextBytes);
  if (text.bytes == nullptr) return invalid("{} is NULL", text.name);
  return std::string_view(text.bytes, text.length);
}

// The handler as a function of ours.
DecryptPassword decryption_by(DecryptHandler handler) {
  if (handler == nullptr) return {};
  return [handler](std::string_view cipher) {
    return decrypted("the decrypt handler", [&](char* plain, std::size_t& length) {
      return handler(cipher.data(), cipher.size(), plain, length);
    });
  };
}

}  // namespace

// With room for one byte more than may be filled, since some end what they write with a zero.
Result<std::string> decrypted(std::string_view name,
                              const std::function<int(char* plain, std::size_t& length)>& decrypt) {
  std::string plain(kMostPasswordBytes + 1, '\0');
  std::size_t length = kMostPasswordBytes;
  const int failure = decrypt(plain.data(), length);
  if (failure != 0) return invalid("{} returned {}", name, failure);
  if (length == 0 || length > kMostPasswordBytes)
    return invalid("{} gave {} bytes, allowed are 1 to {}", name, length, kMostPasswordBytes);
  plain.resize(length);
  return plain;
}

Status choose_tls(bool enable, const GivenText& tls_info) {
  StoreSecurity security;
  security.kind = enable ? StoreSecurity::Kind::kCertificates : StoreSecurity::Kind::kPlain;
  if (enable) {
    MEMSPAN_TRY_ASSIGN(const std::string_view text, check(tls_info), "choosing certificates");
    MEMSPAN_TRY_ASSIGN(security.certificates, parse_tls_info(text.substr(0, text.find('\0'))),
                       "choosing certificates");
  }
  MutexLock lock(choice().mutex);
  choice().security = std::move(security);
  return Status::ok();
}

Status give_tls_key(const GivenText& key, const GivenText& password, DecryptHandler decrypt) {
  MEMSPAN_TRY_ASSIGN(const std::string_view key_text, check(key), "taking a key");
  if (key_text.empty()) return invalid("{} is empty", key.name);
  std::string_view password_text;
  if (password.bytes != nullptr || password.length > kMostTextBytes) {
    MEMSPAN_TRY_ASSIGN(password_text, check(password), "taking a key's password");
  }
  MutexLock lock(choice().mutex);
  choice().key = key_text;
  choice().password = password_text;
  if (decrypt != nullptr) choice().decrypt = decryption_by(decrypt);
  return Status::ok();
}

void give_tls_decryption(DecryptHandler decrypt) {
  MutexLock lock(choice().mutex);
  choice().decrypt = decryption_by(decrypt);
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
