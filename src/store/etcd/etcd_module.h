// SPDX-License-Identifier: Apache-2.0
// The store on etcd (docs/design/0010-etcd.md). The code that needs libcurl is in a module,
// libmemspan_etcd.so, which is loaded when a process first uses an etcd:// address.
#pragma once

#include "core/log.h"
#include "store/connect.h"

namespace memspan::inline store {

// Connects a member. Retries while no member of etcd answers; kTimeout then names them. kAuth if
// etcd and this process do not trust each other, or the connection would be plain on an untrusted
// network. kNotSupported without the module.
Result<std::unique_ptr<KeyValueStore>> connect_etcd(const StoreAccess& access, Deadline deadline);

// Functions of the process's own library for the module, which has its own copy of core. All are
// thread-safe.
struct EtcdHost {
  bool (*is_interrupted)();
  Status (*interruption)();
  void (*log)(LogLevel level, std::string_view line);
};

// The module exports a function that returns this.
struct EtcdModule {
  const char* version;  // MEMSPAN_VERSION of the module
  Result<std::unique_ptr<KeyValueStore>> (*connect)(const StoreAccess& access, const EtcdHost& host,
                                                    Deadline deadline);
};
inline constexpr const char* kEtcdModuleEntry = "memspan_etcd_module";
using EtcdModuleEntry = const EtcdModule* (*)();

}  // namespace memspan::inline store
