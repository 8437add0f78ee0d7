// SPDX-License-Identifier: Apache-2.0
#include "capi/smem/tls_config.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "capi/smem/result.h"

namespace memspan::capi {
namespace {

Result<std::string> read_path(const char* field, const char (&text)[SMEM_TLS_PATH_SIZE],
                              bool is_needed) {
  const void* const end = std::memchr(text, '\0', sizeof text);
  if (end == nullptr)
    return invalid(fmt::format("{} has no end within {} bytes", field, sizeof text));
  if (is_needed && text[0] == '\0')
    return invalid(fmt::format("{} is empty, but tlsEnable is true", field));
  return std::string(text);
}

// The library's exported function, as a value.
struct Decrypter {
  int (*decrypt)(const char*, std::size_t, char*, std::size_t);
};

// Kept loaded: the function may have registered something.
Result<Decrypter> load_decrypter(const std::string& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const function = library == nullptr ? nullptr : ::dlsym(library, "DecryptPassword");
  if (function == nullptr)
    return invalid(
        fmt::format("decrypterLibPath {} gives no DecryptPassword: {}", path, ::dlerror()));
  return Decrypter{reinterpret_cast<decltype(Decrypter::decrypt)>(function)};
}

// The function ends what it writes with a zero; it does not say how long that is.
DecryptPassword decryption_by(const std::string& path) {
  return [path](std::string_view cipher) -> Result<std::string> {
    MEMSPAN_PASS_ASSIGN(auto library, load_decrypter(path));
    constexpr std::size_t kMostBytes = 4096;
    std::string plain(kMostBytes + 1, '\0');
    const std::string text(cipher);
    const int failure = library.decrypt(text.c_str(), text.size(), plain.data(), kMostBytes);
    if (failure != 0)
      return invalid(fmt::format("DecryptPassword of {} returned {}", path, failure));
    plain.resize(std::strlen(plain.c_str()));
    if (plain.empty() || plain.size() > kMostBytes)
      return invalid(fmt::format("DecryptPassword of {} gave {} bytes, allowed are 1 to {}", path,
                                 plain.size(), kMostBytes));
    return plain;
  };
}

}  // namespace

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
