// SPDX-License-Identifier: Apache-2.0
// The teams behind active sets, made by the first collective of a set. All members make the same
// calls, so each finds the team missing, or present, when the others do.
#pragma once

#include <memory>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "pgas/team.h"

namespace memspan::pgas {

// Thread-safe; one set is used by one thread at a time. The teams live as long as it does.
class ActiveSets {
 public:
  explicit ActiveSets(World& world) : world_(world) {}

  // Collective over the members of `shape`, this process one of them. `sync` is a symmetric word,
  // 0 on all members and in no other use during the call; it is 0 again afterwards.
  // kInvalidArgument: the shape does not fit the job, or this process is not a member.
  Result<Team*> find_or_make(const char* what, const TeamShape& shape, long* sync);

 private:
  Team* find(const TeamShape& shape);
  Result<std::uint64_t> agree_on_place(const char* what, const TeamShape& shape, long* sync);

  World& world_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Team>> teams_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::pgas
