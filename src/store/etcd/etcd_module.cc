// SPDX-License-Identifier: Apache-2.0
// The only function that libmemspan_etcd.so exports.
#include "store/etcd/etcd_module.h"

#include "store/etcd/etcd_store.h"

extern "C" __attribute__((visibility("default"))) const memspan::EtcdModule* memspan_etcd_module() {
  static constexpr memspan::EtcdModule kModule{MEMSPAN_VERSION, memspan::etcd::EtcdStore::connect};
  return &kModule;
}
