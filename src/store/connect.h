// SPDX-License-Identifier: Apache-2.0
// Connects a member to a store of either kind.
#pragma once

#include "net/security.h"
#include "store/key_value_store.h"
#include "store/store_address.h"

namespace memspan::inline store {

// The address of a store and the member that connects to it. A value.
struct StoreAccess {
  StoreAddress endpoint;
  StoreSecurity security = {};
  std::string member = {};  // a name for messages ("PE 3")
  std::string job = {};     // empty: the store's job
  int rank = -1;            // claimed, if a certificate names one
  // Each side treats the other as dead after this silence; the client then keeps a thread that
  // pings. Zero: only the end of the connection counts. Not set: zero on one host, 3 s between
  // hosts.
  std::optional<Duration> silence = {};
  // A process that listens at the address but is not a store of this job's is taken for one that
  // ends, or is about to be replaced, for this long.
  Duration refusal_patience = std::chrono::milliseconds(800);
  // Called before each attempt to connect, on its thread: a process that may host the store tries
  // to.
  std::function<void()> before_attempt = {};
};

// Like StoreClient::connect() or connect_etcd().
Result<std::unique_ptr<KeyValueStore>> connect_store(const StoreAccess& access, Deadline deadline);
// Makes one attempt; etcd's members are tried until the deadline. Returns kUnavailable for some
// failures that connect_store() identifies as kAuth by retrying.
Result<std::unique_ptr<KeyValueStore>> connect_store_once(const StoreAccess& access,
                                                          Deadline deadline);

}  // namespace memspan::inline store
