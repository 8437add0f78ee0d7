// SPDX-License-Identifier: Apache-2.0
// For libmemspan.so and our programs: loads libmemspan_etcd.so, once and for good.
#include <fmt/format.h>

#include "core/interrupt.h"
#include "core/module.h"
#include "store/etcd/etcd_module.h"

namespace memspan {
namespace {

constexpr const char* kModuleFile = "libmemspan_etcd.so";

Result<const EtcdModule*> load() {
  auto found = load_module(kModuleFile, kEtcdModuleEntry);
  if (!found.is_ok())
    return Status(found.code(),
                  fmt::format("etcd:// needs a module that is built where libcurl4-openssl-dev and "
                              "nlohmann-json3-dev are, or libcurl at run time: {}",
                              found.status().message()));
  const EtcdModule* module = reinterpret_cast<EtcdModuleEntry>(*found)();
  if (std::string_view(module->version) != MEMSPAN_VERSION)
    return Status(Code::kNotSupported,
                  fmt::format("{} is of version {}, and this is " MEMSPAN_VERSION, kModuleFile,
                              module->version));
  return module;
}

}  // namespace

Result<std::unique_ptr<KeyValueStore>> connect_etcd(const StoreAccess& access, Deadline deadline) {
  static const auto& module = *new Result<const EtcdModule*>(load());
  if (!module.is_ok()) return module.status();
  const EtcdHost host{.is_interrupted = [] { return is_interrupted(); },
                      .interruption = interruption,
                      .log = log_line};
  return (*module)->connect(access, host, deadline);
}

}  // namespace memspan
