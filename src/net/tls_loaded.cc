// SPDX-License-Identifier: Apache-2.0
// For libmemspan.so and oshrun: loads libmemspan_tls.so from their folder, once and for good.
#include <fmt/format.h>

#include "core/module.h"
#include "net/tls.h"

namespace memspan::inline net {
namespace {

constexpr const char* kModule = "libmemspan_tls.so";

MEMSPAN_REMEDY(
    kNoOpenSsl, "no-openssl", "TLS between processes needs OpenSSL 3, which this system lacks.",
    "Install it (package libssl3), start the job by oshrun on one host, or turn TLS off: "
    "shmem_set_conf_store_tls(false, NULL, 0) before the start.");

Result<const TlsFactory*> load() {
  const Result<void*> found = load_module(kModule, kTlsModuleEntry);
  if (!found.is_ok()) {
    const std::string& why = found.status().message();
    const bool is_openssl =
        why.find("libssl") != std::string::npos || why.find("libcrypto") != std::string::npos;
    return Status(found.code(), fmt::format("TLS: {}{}", why, is_openssl ? kNoOpenSsl : ""));
  }
  const TlsFactory* factory = reinterpret_cast<TlsModuleEntry>(*found)();
  if (factory == nullptr || std::string_view(factory->version) != MEMSPAN_VERSION)
    return Status(Code::kNotSupported,
                  fmt::format("{} is not of this version, " MEMSPAN_VERSION, kModule));
  return factory;
}

}  // namespace

Result<const TlsFactory*> tls_factory() {
  static const auto& loaded = *new Result<const TlsFactory*>(load());
  return loaded;
}

}  // namespace memspan::inline net
