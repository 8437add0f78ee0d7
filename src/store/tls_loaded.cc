// SPDX-License-Identifier: Apache-2.0
// For libmemspan.so and oshrun: loads libmemspan_tls.so from beside them, once and for good.
#include <dlfcn.h>
#include <fmt/format.h>

#include "store/tls.h"

namespace memspan {
namespace {

constexpr const char* kModule = "libmemspan_tls.so";

// The folder of the library or program that this code is in.
std::string own_folder() {
  Dl_info about = {};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &about) == 0 || about.dli_fname == nullptr)
    return ".";
  const std::string path = about.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

Result<const TlsFactory*> load() {
  const std::string path = fmt::format("{}/{}", own_folder(), kModule);
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (module == nullptr)
    return Status(Code::kNotSupported, fmt::format("TLS needs {}: {}", kModule, dlerror()));
  const auto entry = reinterpret_cast<TlsModuleEntry>(dlsym(module, kTlsModuleEntry));
  const TlsFactory* factory = entry == nullptr ? nullptr : entry();
  if (factory == nullptr || std::string_view(factory->version) != MEMSPAN_VERSION)
    return Status(Code::kNotSupported,
                  fmt::format("\"{}\" is not of this version, " MEMSPAN_VERSION, path));
  return factory;
}

const Result<const TlsFactory*>& factory() {
  static const Result<const TlsFactory*> loaded = load();
  return loaded;
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::from_secret(Side side,
                                                                  std::string_view secret) {
  if (!factory().is_ok()) return factory().status();
  return (*factory())->from_secret(side, secret);
}

Result<std::shared_ptr<const TlsContext>> TlsContext::from_certificates(
    Side side, const StoreCertificates& certificates) {
  if (!factory().is_ok()) return factory().status();
  return (*factory())->from_certificates(side, certificates);
}

}  // namespace memspan
