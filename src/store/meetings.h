// SPDX-License-Identifier: Apache-2.0
// Groups of numbered members that meet: everybody brings bytes and gets those of all.
//
//   group "g" of 3      operation 0      1        2
//     rank 0            came, answered   came     -
//     rank 1            came, answered   came     came, waits
//     rank 2            came, answered   (late)   -
//
// A member numbers its operations itself and one that timed out counts, so nobody gets out of
// step: whoever comes late to an operation still finds what the others brought. A member whose
// session ended has its place for good; every operation that it had not come to fails with its
// name, for all who wait and all who come. A group is forgotten when nobody is left in it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "store/answers.h"
#include "store/charges.h"
#include "store/quota.h"

namespace memspan {

// One thread at a time.
class StoreMeetings {
 public:
  // A group has at most this many members.
  static constexpr std::uint32_t kMostMembers = 65536;

  // `charges` must outlive it.
  StoreMeetings(StoreQuota quota, StoreCharges& charges) : quota_(quota), charges_(charges) {}

  // meet: appends the answers of all who wait when this is the last to come, nothing when others
  // are missing. kInvalidArgument names what does not fit the group, kUnavailable who has the
  // rank already, kPeerLost who is gone.
  void meet(SessionId from, const std::string& member, StoreRequest request, Clock::time_point now,
            StoreAnswers& answers);
  // Makes the group, which must not be there, of members who have all come: by rank, each with its
  // name.
  void found(const std::string& group,
             const std::vector<std::pair<SessionId, std::string>>& members);
  // leave: the session's place in the group is gone, as by disconnect().
  StoreAnswer leave(SessionId from, const StoreRequest& request, StoreAnswers& answers);
  // `why` says how the session ended, for the others' messages.
  void disconnect(SessionId session, const std::string& why, StoreAnswers& answers);
  // Answers kTimeout, naming the missing ranks, to all whose time was over at `now`.
  void expire(Clock::time_point now, StoreAnswers& answers);
  std::optional<Clock::time_point> next_deadline() const;

 private:
  struct Waiting {
    SessionId session = 0;
    std::uint64_t request = 0;
    std::optional<Clock::time_point> deadline;
  };
  struct Part {
    SessionId session = 0;  // that brought it
    std::string bytes;
  };
  struct Operation {
    std::map<int, Part> parts;       // of the ranks that came
    std::map<int, Waiting> waiting;  // of those, who was not answered yet
  };
  struct Member {
    SessionId session = 0;
    std::string name;
    std::uint64_t next = 0;    // the first operation that it has not come to
    std::string gone_because;  // empty: is there
  };
  struct Group {
    std::uint32_t size = 0;
    std::map<int, Member> members;
    std::map<std::uint64_t, Operation> operations;  // that not all have come to yet
  };
  struct Alarm {
    Clock::time_point when;
    std::string group;
    std::uint64_t operation = 0;
    int rank = 0;
    // Silenced, because clang-tidy 14 takes the default for a null pointer.
    auto operator<=>(const Alarm&) const = default;  // NOLINT(modernize-use-nullptr)
  };

  std::optional<std::string> unfit(const StoreRequest& request) const;
  std::optional<StoreAnswer> enter(Group& group, SessionId from, const std::string& member,
                                   const StoreRequest& request);
  void wait(const std::string& name, std::uint64_t number, Operation& operation, SessionId from,
            const StoreRequest& request, Clock::time_point now);
  void complete(const std::string& name, Group& group, std::uint64_t number, StoreAnswers& answers);
  bool give_up(const std::string& name, const Group& group, std::uint64_t number,
               Operation& operation, StoreAnswers& answers);
  void forget(const std::string& name, Operation& operation);
  void forget(const std::string& name, Group& group);
  void end_waits(const std::string& name, int rank, const std::string& why, StoreAnswers& answers);
  void remove_member(const std::string& name, int rank, const std::string& why,
                     StoreAnswers& answers);
  void answer_all(const std::string& name, std::uint64_t number, Operation& operation,
                  const StoreAnswer& answer, StoreAnswers& answers);

  const StoreQuota quota_;
  StoreCharges& charges_;
  std::size_t bytes_ = 0;  // of all parts
  std::size_t parts_ = 0;
  std::map<std::string, Group> groups_;
  std::map<SessionId, std::set<std::pair<std::string, int>>> places_;  // group and rank
  std::set<Alarm> alarms_;
};

}  // namespace memspan
