// SPDX-License-Identifier: Apache-2.0
// A group's operations on a store that has only the plain verbs. group.h shows the keys.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/recipes/change_queue.h"
#include "store/recipes/group.h"
#include "store/recipes/group_records.h"

namespace memspan {

// One thread at a time. A contribution stays until all members have come to the next operation, and
// a departed member contributes no more. So every member gets the same outcome, whenever it looks.
// Every present member records a departure as soon as it happens.
class StoreGroup::ByVerbs {
 public:
  ByVerbs(KeyValueStore& store, std::string name, int rank, int size);
  ~ByVerbs();

  Result<std::vector<std::string>> allgather(std::uint64_t operation, std::string_view mine,
                                             const Deadline& deadline);
  Status leave(const Deadline& deadline);

 private:
  class Departures;
  using Parts = std::map<int, std::string>;  // by rank

  std::string key(std::string_view kind, int rank) const;
  std::string prefix(std::uint64_t operation) const;
  // This member's own key.
  std::string presence_key() const;
  GroupPresence presence() const;

  // Watches and reads the group, and takes this member's place in it; once.
  Status enter(const Deadline& deadline);
  Status read_created(const std::string& members, const Deadline& deadline);
  Status watch_members(const Deadline& deadline);
  Status take_place(const Deadline& deadline);
  void take(const StoreChange& change);
  void take_part(std::string_view key, const std::string& value);
  // The outcome of the operation, if it has one already.
  std::optional<Result<std::vector<std::string>>> outcome(std::uint64_t operation,
                                                          const Deadline& deadline);
  Status lost(std::uint64_t operation, int rank, const std::string& why, const Deadline& deadline);
  void forget_before(std::uint64_t operation, const Deadline& deadline);
  void stop_watching_members();
  Result<bool> is_anybody_there(const Deadline& deadline);

  KeyValueStore& store_;
  const std::string name_;
  const int rank_;
  const int size_;
  ChangeQueue changes_;
  const std::shared_ptr<Departures> departures_;  // shared with its watcher
  std::uint64_t departure_watch_ = 0;
  bool is_watching_ = false;
  bool has_entered_ = false;
  bool has_left_ = false;
  std::optional<GroupMembers> created_;   // not for a group that has only a name
  std::map<int, GroupPresence> present_;  // as last seen
  std::map<int, std::string> gone_;       // why
  std::map<std::uint64_t, Parts> parts_;  // by operation, of unfinished ones
  std::vector<std::uint64_t> to_remove_;  // operations whose own contribution is in the store
};

}  // namespace memspan
