// SPDX-License-Identifier: Apache-2.0
// Pre-authentication admission control: limits the connections that are not authenticated yet, per
// address and in all. At a limit, a new connection replaces the oldest one that has sent nothing.
// If all have sent something, it replaces the oldest, unless that may still be in its handshake.
// Else the new connection is refused.
#pragma once

#include <algorithm>
#include <map>

#include "store/wire.h"

namespace memspan::inline store {

// One thread at a time.
class StoreAdmission {
 public:
  struct Limits {
    std::size_t per_address = 64;
    std::size_t in_all = 1024;
    Duration handshake = std::chrono::seconds(1);
  };
  explicit StoreAdmission(Limits limits) : limits_(limits) {}

  // Ids grow with time. Returns the connection to close, if any: another one, or `id` itself, which
  // is then not counted.
  std::optional<SessionId> accept(SessionId id, const std::string& address, Clock::time_point now) {
    const auto same = std::count_if(pending_.begin(), pending_.end(), [&](const auto& other) {
      return other.second.address == address;
    });
    const bool is_address_full = static_cast<std::size_t>(same) >= limits_.per_address;
    std::optional<SessionId> replaced;
    if (is_address_full || pending_.size() >= limits_.in_all) {
      replaced = to_replace(is_address_full ? &address : nullptr, now);
      if (!replaced) return id;
      release(*replaced);
    }
    pending_.emplace(id, Pending{.address = address, .since = now});
    return replaced;
  }
  // The connection has sent something.
  void note_activity(SessionId id) {
    if (auto found = pending_.find(id); found != pending_.end()) found->second.is_active = true;
  }
  // The connection is authenticated or closed.
  void release(SessionId id) { pending_.erase(id); }

 private:
  struct Pending {
    std::string address;
    Clock::time_point since;
    bool is_active = false;  // has sent something
  };
  // Searches one address, or all if it is null.
  std::optional<SessionId> to_replace(const std::string* address, Clock::time_point now) const {
    std::optional<SessionId> slowest;
    for (const auto& [id, pending] : pending_) {
      if (address != nullptr && pending.address != *address) continue;
      if (!pending.is_active) return id;
      if (!slowest && now - pending.since > limits_.handshake) slowest = id;
    }
    return slowest;
  }

  const Limits limits_;
  std::map<SessionId, Pending> pending_;
};

}  // namespace memspan::inline store
