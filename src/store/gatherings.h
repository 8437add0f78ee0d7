// SPDX-License-Identifier: Apache-2.0
// Meetings under a name of whoever comes: of members that number themselves only for this one, and
// that may be others the next time.
//
//   gather "k" of 2     round 7              round 8           each rank comes to the first round
//     rank 0            PE 3 (gave up)       PE 3, waits       that it has not come to, so that
//     those rank 1            (late)               -                 who call the same rounds stay
//     in step
//
//   assemble "n" of 3   one round, all or nothing: who gives up takes its part along, and a death
//                       ends it for all; those who came become a new group (StoreMeetings)
//
// When nothing is pending the name is free for others. For a while it is still known who met there
// last: when one of them is gone, the others' next round fails at once with its name.
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
class StoreGatherings {
 public:
  // A gathering has at most this many members.
  static constexpr std::uint32_t kMostMembers = 65536;
  // Of so many names it is known who met there last.
  static constexpr std::size_t kMostIdle = 1024;

  // `charges` must outlive it.
  StoreGatherings(StoreQuota quota, StoreCharges& charges) : quota_(quota), charges_(charges) {}

  // The group that an assembly became; its answer has the group's name after the parts.
  struct Assembled {
    std::string group;
    std::vector<std::pair<SessionId, std::string>> members;  // by rank, with their names
  };
  // gather, assemble: appends the answers of all who wait when this is the last to come, nothing
  // when others are missing. kInvalidArgument names what does not fit (an assembly of different
  // sizes fails for all), kUnavailable who has the rank already, kPeerLost who is gone.
  std::optional<Assembled> come(SessionId from, const std::string& member, StoreRequest request,
                                Clock::time_point now, StoreAnswers& answers);
  // leave: for the gatherings of that name the session is gone, as by disconnect().
  StoreAnswer leave(SessionId from, const StoreRequest& request, StoreAnswers& answers);
  void disconnect(SessionId session, const std::string& why, StoreAnswers& answers);
  // Answers kTimeout, naming the missing ranks, to all whose time was over at `now`.
  void expire(Clock::time_point now, StoreAnswers& answers);
  std::optional<Clock::time_point> next_deadline() const;

 private:
  using Name = std::pair<StoreOperation, std::string>;
  struct Seat {
    SessionId session = 0;
    std::string member;
    std::string gone_because;  // empty: is there
  };
  struct Part {
    Seat seat;
    std::string bytes;
    std::optional<std::uint64_t> waiting;  // its request, when that was not answered yet
    std::optional<Clock::time_point> deadline;
  };
  using Round = std::map<int, Part>;
  struct Gathering {
    std::uint32_t size = 0;
    std::map<std::uint64_t, Round> rounds;  // that not all have come to yet
    std::map<int, Seat> last;               // who met last, as far as nobody else has come since
    std::uint64_t idle = 0;                 // its entry in idle_; 0: none
  };
  struct Alarm {
    Clock::time_point when;
    Name name;
    std::uint64_t round = 0;
    int rank = 0;
    // Silenced, because clang-tidy 14 takes the default for a null pointer.
    auto operator<=>(const Alarm&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  using Found = std::map<Name, Gathering>::iterator;

  std::optional<StoreAnswer> unfit(const StoreRequest& request) const;
  std::optional<StoreAnswer> fit_size(Found found, const StoreRequest& request,
                                      StoreAnswers& answers);
  // The round that the member comes to, with no part of it.
  Result<std::uint64_t> round_for(Found found, SessionId from, int rank);
  void wait(Found found, std::uint64_t number, Seat seat, StoreRequest request,
            Clock::time_point now);
  std::optional<Assembled> complete(Found found, std::uint64_t number, StoreAnswers& answers);
  void end_member(Found found, SessionId session, const std::string& why, StoreAnswers& answers);
  void lose(Found found, int rank, const std::string& why, StoreAnswers& answers);
  // Tells all who wait in it, and drops it with its parts.
  void end_round(Found found, std::uint64_t number, const StoreAnswer& answer,
                 StoreAnswers& answers);
  void drop_part(Found found, std::uint64_t number, int rank);
  void remember(Found found, int rank, const Seat& seat);
  void forget_last(Found found);
  void rest(Found found);
  void wake(Gathering& gathering);
  void forget(Found found);
  static bool is_awaited(const Gathering& gathering);
  static bool has_anybody(const Gathering& gathering);

  const StoreQuota quota_;
  StoreCharges& charges_;
  std::size_t bytes_ = 0;  // of all parts
  std::size_t parts_ = 0;
  std::uint64_t serial_ = 0;
  std::map<Name, Gathering> gatherings_;
  std::map<SessionId, std::set<Name>> places_;  // where it has a part or a seat
  std::map<std::uint64_t, Name> idle_;          // those without rounds, the oldest first
  std::set<Alarm> alarms_;
};

}  // namespace memspan
