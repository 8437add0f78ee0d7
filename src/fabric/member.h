// SPDX-License-Identifier: Apache-2.0
// This process as a member of one store: what its pools, spaces and endpoints share.
#pragma once

#include <memory>
#include <string>

#include "core/clock.h"
#include "core/status.h"
#include "fabric/door.h"
#include "store/client.h"

namespace memspan {

// Thread-safe. Must outlive what uses it; the last that goes ends the connection, and with it what
// the store keeps for this process.
class Member {
 public:
  // Connects, as StoreClient::connect() does.
  static Result<std::shared_ptr<Member>> join(const StoreAccess& access, Deadline deadline);

  StoreClient& store() { return *store_; }
  Door& door() { return *door_; }
  // Members with the same one can share memory.
  const std::string& host() const { return host_; }

 private:
  Member(std::unique_ptr<Door> door, std::unique_ptr<StoreClient> store, std::string host)
      : host_(std::move(host)), door_(std::move(door)), store_(std::move(store)) {}
  const std::string host_;
  std::unique_ptr<Door> door_;
  std::unique_ptr<StoreClient> store_;
};

}  // namespace memspan
