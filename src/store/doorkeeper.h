// SPDX-License-Identifier: Apache-2.0
// Who may wait at the door: connections that have not proved yet who they are, at most so many
// from one address and so many in all. Beyond that the one that has waited longest without a word
// has to go for the new one; when all have spoken, the one that has waited longest, if that was
// longer than a handshake takes; else the new one.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "core/clock.h"
#include "store/wire.h"

namespace memspan {

// One thread at a time.
class StoreDoorkeeper {
 public:
  struct Limits {
    std::size_t per_address = 64;
    std::size_t in_all = 1024;
    Duration handshake = std::chrono::seconds(1);
  };
  explicit StoreDoorkeeper(Limits limits) : limits_(limits) {}

  // Numbers grow with time. Who has to go, if anybody: another one, or `id` itself, which is then
  // not at the door.
  std::optional<SessionId> arrive(SessionId id, const std::string& address, Clock::time_point now);
  void speak(SessionId id);
  // Has been let in, or has gone.
  void leave(SessionId id);

 private:
  struct Waiting {
    std::string address;
    Clock::time_point since;
    bool has_spoken = false;
  };
  // `address` null: of all.
  std::optional<SessionId> who_goes(const std::string* address, Clock::time_point now) const;

  const Limits limits_;
  std::map<SessionId, Waiting> waiting_;
  std::map<std::string, std::size_t> by_address_;
};

}  // namespace memspan
