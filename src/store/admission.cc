// SPDX-License-Identifier: Apache-2.0
#include "store/admission.h"

#include <algorithm>

namespace memspan {

std::optional<SessionId> StoreAdmission::accept(SessionId id, const std::string& address,
                                                Clock::time_point now) {
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

void StoreAdmission::note_activity(SessionId id) {
  if (auto found = pending_.find(id); found != pending_.end()) found->second.is_active = true;
}

std::optional<SessionId> StoreAdmission::to_replace(const std::string* address,
                                                    Clock::time_point now) const {
  std::optional<SessionId> slowest;
  for (const auto& [id, pending] : pending_) {
    if (address != nullptr && pending.address != *address) continue;
    if (!pending.is_active) return id;
    if (!slowest && now - pending.since > limits_.handshake) slowest = id;
  }
  return slowest;
}

}  // namespace memspan
