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
//
// The members of a group that create_group() has made have their keys under their leases before
// the group exists, under NAME/alive/.
//
// One member, the first to come, collects: it watches the members and writes the outcomes, which
// all others watch. So an operation costs each member one request, whatever the store is. If the
// collector leaves or dies, the next one that waits takes its place.
#pragma once

#include <fmt/format.h>

#include <map>

#include "store/fields.h"
#include "store/recipes/change_queue.h"
#include "store/recipes/contributions.h"

namespace memspan::inline store {

// A member's own record, which outlives it. A value.
struct GroupMember {
  static constexpr std::string_view kWhat = "member";
  std::uint64_t lease = 0;
  std::string name = {};
  bool has_left = false;
  // Its contributions to the operations that it does not know to be over.
  std::map<std::uint64_t, Contribution> parts = {};

  static void fields(auto& codec, auto& self) {
    codec(self.lease, self.name, self.has_left);
    codec.rest(self.parts);
  }
};

// How an operation ended. A value.
struct GroupOutcome {
  std::uint64_t operation = 0;
  bool is_complete = false;  // all have contributed
  Status status = {};
  // By rank, if the status is kOk; one if all are equal, as those of a barrier.
  std::vector<std::string> parts = {};

  static constexpr std::string_view kWhat = "outcome";
  static void fields(auto& codec, auto& self) {
    codec(self.operation, self.is_complete, self.status);
    codec.rest(self.parts);
  }
};

// A group that its members have just made (create_group()). A value.
struct CreatedGroup {
  struct Member {
    std::uint64_t nonce = 0;
    std::uint64_t lease = 0;
    std::string name;
  };
  std::string name = {};  // unique in the store
  std::string alive_prefix = {};
  std::vector<Member> members = {};             // by rank
  std::vector<std::string> contributions = {};  // by rank

  // A member's own key, as long as it is a member.
  std::string alive_key(std::uint64_t nonce) const {
    return fmt::format("{}{:016x}", alive_prefix, nonce);
  }
};

// The keys of one group. A value.
struct GroupKeys {
  std::string group;
  int size = 0;
  CreatedGroup created = {};              // without members: the group has only a name
  std::map<std::string, int> ranks = {};  // of its members, by their own keys

  bool is_created() const { return !created.members.empty(); }
  std::string size_key() const { return group + "/size"; }
  std::string member_prefix() const { return group + "/member/"; }
  std::string member_key(int rank) const { return rank_key(member_prefix(), rank); }
  std::string alive_prefix() const {
    return is_created() ? created.alive_prefix : group + "/alive/";
  }
  std::string alive_key(int rank) const {
    if (!is_created()) return rank_key(alive_prefix(), rank);
    return created.alive_key(created.members[static_cast<std::size_t>(rank)].nonce);
  }
  // -1 for a key of another group.
  int rank_of_alive(std::string_view key) const {
    if (is_created()) {
      const auto found = ranks.find(std::string(key));
      return found == ranks.end() ? -1 : found->second;
    }
    const auto rank = rank_in_key(key, alive_prefix());
    return rank.is_ok() ? *rank : -1;
  }
  std::string wait_prefix() const { return group + "/wait/"; }
  std::string collector_key() const { return wait_prefix() + "collector"; }
  std::string outcome_key() const { return wait_prefix() + "outcome"; }
};

// One thread at a time. The store must outlive it.
class StoreGroup : NotCopyable {
 public:
  // Called ten times a second while an operation waits, with the missing ranks in the member that
  // collects, and with none in others. A failure ends the wait; kPeerLost ends that of all members.
  using Look = std::function<Status(const std::vector<int>& missing)>;

  // All members pass the same new `name`. A name is new again when all members of its group have
  // left. 0 <= rank < size.
  StoreGroup(KeyValueStore& store, std::string name, int rank, int size);
  StoreGroup(KeyValueStore& store, const CreatedGroup& created, int rank);
  ~StoreGroup();

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

}  // namespace memspan::inline store
