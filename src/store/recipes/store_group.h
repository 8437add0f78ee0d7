// SPDX-License-Identifier: Apache-2.0
// Recipe: barrier and all-gather among the `size` numbered members of a group.
//
// Operation k of every member has the number k. So members stay in step as long as all call the
// same operations in the same order. A failed operation (timeout, a departed member) still counts,
// and a late member still finds what the others contributed. A member that left, or whose lease has
// ended, keeps its place: each operation that it has not contributed to fails for all.
//
//   GROUP/member/00001    rank 1's contributions; outlives rank 1
//   GROUP/alive/00001     under the lease of rank 1
//   GROUP/wait/collector  under the lease of the member that collects
//   GROUP/wait/outcome    of the last operation that is over: all members' bytes, or a failure
//   GROUP/size
//   GROUP/members         of a group that create_group() has made: names its members' own keys
//                         under their leases, which exist before the group does
//
// One member, the first to come, collects: it watches the members and writes the outcomes, which
// all others watch. So an operation costs each member one request, whatever the store is. If the
// collector leaves or dies, the next one that waits takes its place.
#pragma once

#include "store/recipes/change_queue.h"
#include "store/recipes/group_records.h"

namespace memspan {

// One thread at a time. The store must outlive it.
class StoreGroup {
 public:
  // Called ten times a second while an operation waits, with the missing ranks in the member that
  // collects, and with none in others. A failure ends the wait; kPeerLost ends that of all members.
  using Look = std::function<Status(const std::vector<int>& missing)>;

  // All members pass the same `name`: that of a created group, or a new one. A name is new again
  // when all members of its group have left. 0 <= rank < size.
  StoreGroup(KeyValueStore& store, std::string name, int rank, int size);
  ~StoreGroup();
  StoreGroup(const StoreGroup&) = delete;
  StoreGroup& operator=(const StoreGroup&) = delete;

  // kTimeout names the missing ranks, kPeerLost the first departed one, kUnavailable the holder of
  // the rank, kInvalidArgument the other size that a member passed.
  Status barrier(Deadline deadline);
  // Returns all members' bytes, by rank; each at most most_contributed(). Fails like barrier().
  Result<std::vector<std::string>> allgather(std::string_view mine, Deadline deadline,
                                             const Look& look = {});
  // Gives up the place: the others' next operation fails with kPeerLost.
  Status leave(Deadline deadline);
  // Afterwards this object does nothing at the store; another one of this member may. As the
  // destructor, which waits at most two seconds for a store that does not answer.
  Status stop(Deadline deadline);

 private:
  class Collector;
  Result<std::vector<std::string>> run(std::uint64_t operation, std::string_view mine,
                                       const Deadline& deadline, const Look& look);
  void take_changes(std::uint64_t operation, const Deadline& deadline);
  Status enter(const Deadline& deadline);
  Status read_founders(const Deadline& deadline);
  Status take_place(const Deadline& deadline);
  Status collect(const Deadline& deadline);
  Status stop_collecting(const Deadline& deadline);
  Status look_around(std::uint64_t operation, const Look& look);
  Status give_up(std::uint64_t operation);
  Status remove_all(const Deadline& deadline);

  KeyValueStore& store_;
  const int rank_;
  GroupKeys keys_;
  GroupMember mine_;
  std::uint64_t operation_ = 0;
  std::optional<ChangeQueue> changes_ = {};  // of the outcomes and the collector; null: outside
  std::map<std::uint64_t, GroupOutcome> outcomes_ = {};  // by operation, not taken yet
  bool has_collector_ = false;                           // as far as this member knows
  std::shared_ptr<Collector> collector_ = {};  // shared with its watchers; null: another member's
  bool has_left_ = false;
};

}  // namespace memspan
