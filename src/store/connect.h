// SPDX-License-Identifier: Apache-2.0
// A member of whatever store stands at an address.
#pragma once

#include <memory>

#include "core/clock.h"
#include "core/status.h"
#include "store/client.h"
#include "store/key_value_store.h"

namespace memspan {

// As StoreClient::connect() or connect_etcd().
Result<std::unique_ptr<KeyValueStore>> connect_store(const StoreAccess& access, Deadline deadline);
// One attempt, as StoreClient::connect_once(); etcd's members are tried until the deadline.
Result<std::unique_ptr<KeyValueStore>> connect_store_once(const StoreAccess& access,
                                                          Deadline deadline);

}  // namespace memspan
