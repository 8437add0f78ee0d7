// SPDX-License-Identifier: Apache-2.0
#include "store/connect.h"

#include <utility>

#include "store/etcd/etcd_module.h"

namespace memspan {

Result<std::unique_ptr<KeyValueStore>> connect_store(const StoreAccess& access, Deadline deadline) {
  if (access.endpoint.is_etcd()) return connect_etcd(access, deadline);
  auto client = StoreClient::connect(access, deadline);
  if (!client.is_ok()) return client.status();
  return std::unique_ptr<KeyValueStore>(std::move(client).value());
}

Result<std::unique_ptr<KeyValueStore>> connect_store_once(const StoreAccess& access,
                                                          Deadline deadline) {
  if (access.endpoint.is_etcd()) return connect_etcd(access, deadline);
  auto client = StoreClient::connect_once(access, deadline);
  if (!client.is_ok()) return client.status();
  return std::unique_ptr<KeyValueStore>(std::move(client).value());
}

}  // namespace memspan
