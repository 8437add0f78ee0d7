// SPDX-License-Identifier: Apache-2.0
// The store on etcd (docs/design/0010-etcd.md). What is linked with libcurl is a module,
// libmemspan_etcd.so, that is loaded when a process first goes to an etcd:// address.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/log.h"
#include "core/status.h"
#include "store/client.h"
#include "store/key_value_store.h"

namespace memspan {

// Connects a member. Retries while no member of etcd answers: kTimeout then names them. kAuth when
// etcd, or its certificate, refuses this process or the other way round, or the connection would be
// plain on a network that is not trusted; kNotSupported without the module.
Result<std::unique_ptr<KeyValueStore>> connect_etcd(const StoreAccess& access, Deadline deadline);

// What the module uses of the process's own library, since its copies of core are others. All are
// thread-safe.
struct EtcdHost {
  bool (*is_interrupted)();
  Status (*interruption)();
  void (*log)(LogLevel level, std::string_view line);
};

// What the module exports: a function of this type.
struct EtcdModule {
  const char* version;  // MEMSPAN_VERSION of who made it
  Result<std::unique_ptr<KeyValueStore>> (*connect)(const StoreAccess& access, const EtcdHost& host,
                                                    Deadline deadline);
};
inline constexpr const char* kEtcdModuleEntry = "memspan_etcd_module";
using EtcdModuleEntry = const EtcdModule* (*)();

}  // namespace memspan
