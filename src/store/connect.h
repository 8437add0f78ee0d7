// SPDX-License-Identifier: Apache-2.0
// Connects a member to a store of either kind.
#pragma once

#include <memory>

#include "core/clock.h"
#include "core/status.h"
#include "store/client.h"
#include "store/key_value_store.h"

namespace memspan {

// Like StoreClient::connect() or connect_etcd().
Result<std::unique_ptr<KeyValueStore>> connect_store(const StoreAccess& access, Deadline deadline);
// Makes one attempt, like StoreClient::connect_once(); etcd's members are tried until the deadline.
Result<std::unique_ptr<KeyValueStore>> connect_store_once(const StoreAccess& access,
                                                          Deadline deadline);

}  // namespace memspan
