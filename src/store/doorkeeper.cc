// SPDX-License-Identifier: Apache-2.0
#include "store/doorkeeper.h"

namespace memspan {

std::optional<SessionId> StoreDoorkeeper::arrive(SessionId id, const std::string& address,
                                                 Clock::time_point now) {
  const auto same = by_address_.find(address);
  const bool is_crowd = same != by_address_.end() && same->second >= limits_.per_address;
  std::optional<SessionId> goes;
  if (is_crowd || waiting_.size() >= limits_.in_all) {
    goes = who_goes(is_crowd ? &address : nullptr, now);
    if (!goes) return id;
    leave(*goes);
  }
  waiting_.emplace(id, Waiting{.address = address, .since = now});
  ++by_address_[address];
  return goes;
}

void StoreDoorkeeper::speak(SessionId id) {
  if (auto found = waiting_.find(id); found != waiting_.end()) found->second.has_spoken = true;
}

void StoreDoorkeeper::leave(SessionId id) {
  auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  auto address = by_address_.find(found->second.address);
  if (--address->second == 0) by_address_.erase(address);
  waiting_.erase(found);
}

std::optional<SessionId> StoreDoorkeeper::who_goes(const std::string* address,
                                                   Clock::time_point now) const {
  std::optional<SessionId> slowest;
  for (const auto& [id, waiting] : waiting_) {
    if (address != nullptr && waiting.address != *address) continue;
    if (!waiting.has_spoken) return id;
    if (!slowest && now - waiting.since > limits_.handshake) slowest = id;
  }
  return slowest;
}

}  // namespace memspan
