// SPDX-License-Identifier: Apache-2.0
// The collectives that the store answers in one round trip: all-gathers of groups, ad-hoc
// all-gathers, and the creation of groups. An epoch is complete when every rank has contributed.
//
//   group "g" of 3      epoch 0      1          2       a member numbers its own epochs and counts
//     rank 0            answered     answered   -       those it gave up; a late member still
//     rank 1            answered     answered   waits   finds the others' contributions
//     rank 2            answered     (late)     -
//
//   ad hoc "k" of 2     epoch 7              epoch 8      a rank contributes to the first epoch
//     rank 0            PE 3 (gave up)       PE 3, waits  that lacks it; the callers may change
//     rank 1            (late)               -            every time
//
//   creation "n" of 3   one epoch, all or nothing: a member that gives up withdraws its part, and
//                       a death fails it for all; the contributors become a new group
//
// A process becomes a member of a group with its first contribution, and keeps its place after its
// end. The members of an ad-hoc all-gather are those of the last complete epoch, until another
// caller contributes. An epoch that lacks the contribution of a departed member fails at once and
// names it. The store forgets a group when its last member departs, and an ad-hoc all-gather some
// time after its last epoch.
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
class StoreCollectives {
 public:
  // The members of this many finished ad-hoc all-gathers are remembered.
  static constexpr std::size_t kMostIdle = 1024;

  // `charges` must outlive it.
  StoreCollectives(StoreQuota quota, StoreCharges& charges) : quota_(quota), charges_(charges) {}

  // group_allgather, allgather, create_group: the last contribution appends the answers to all
  // waiting members, an earlier one appends nothing. kInvalidArgument names the mismatch (a
  // creation with different sizes fails for all), kUnavailable the holder of the rank, kPeerLost
  // the departed member. The answer to a creation has the group's name after the contributions.
  void contribute(SessionId from, const std::string& member, StoreRequest request,
                  Clock::time_point now, StoreAnswers& answers);
  // leave_group: ends the session's part in the collectives of that name, like disconnect().
  StoreAnswer leave(SessionId from, const StoreRequest& request, StoreAnswers& answers);
  // `why` says how the session ended, for the others' messages.
  void disconnect(SessionId session, const std::string& why, StoreAnswers& answers);
  // Answers kTimeout, with the missing ranks, to all requests whose time is over at `now`.
  void expire(Clock::time_point now, StoreAnswers& answers);
  std::optional<Clock::time_point> next_deadline() const;

 private:
  using Kind = StoreOperation;
  using Name = std::pair<Kind, std::string>;
  struct Member {
    SessionId session = 0;
    std::string name;
    std::string gone_because;  // empty: present
    std::uint64_t next = 0;    // of a group: the first epoch to which it has not contributed
  };
  struct Contribution {
    SessionId session = 0;
    std::string member;
    std::string bytes;
    std::string gone_because;              // as in Member
    std::optional<std::uint64_t> waiting;  // its request, until answered
    std::optional<Clock::time_point> deadline;
  };
  using Epoch = std::map<int, Contribution>;  // by rank
  struct Collective {
    std::uint32_t size = 0;
    std::map<std::uint64_t, Epoch> epochs;  // incomplete ones
    std::map<int, Member> members;
    std::uint64_t idle = 0;  // its entry in idle_; 0: none
  };
  struct Timer {
    Clock::time_point when;
    Name name;
    std::uint64_t epoch = 0;
    int rank = 0;
    // Silenced, because clang-tidy 14 takes the default for a null pointer.
    auto operator<=>(const Timer&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  using Found = std::map<Name, Collective>::iterator;

  static bool is_group(Found found) { return found->first.first == Kind::kGroupAllgather; }
  static bool is_creation(Found found) { return found->first.first == Kind::kCreateGroup; }

  // Before any change: checks whether the request can be served.
  Status check(SessionId from, const StoreRequest& request) const;
  // Each failure is the caller's answer, and this contribution is then not recorded.
  Status fit_size(Found found, const StoreRequest& request, StoreAnswers& answers);
  Result<std::uint64_t> place_in_group(Found found, SessionId from, const std::string& member,
                                       const StoreRequest& request);
  Result<std::uint64_t> place_ad_hoc(Found found, SessionId from, int rank);
  Status check_members(Found found, std::uint64_t number, StoreAnswers& answers);

  void wait(Found found, std::uint64_t number, SessionId from, const std::string& member,
            StoreRequest request, Clock::time_point now);
  void complete(Found found, std::uint64_t number, StoreAnswers& answers);
  // Answers all waiting members of the epoch, and drops it with its contributions.
  void end_epoch(Found found, std::uint64_t number, const StoreAnswer& answer,
                 StoreAnswers& answers);
  void drop(Found found, std::uint64_t number, int rank);

  void add_member(Found found, int rank, Member member);
  void forget_members(Found found);
  void end_member(Found found, SessionId session, const std::string& why, StoreAnswers& answers);
  // The rank is gone: ends the epochs to which it has not contributed.
  void end_epochs_without(Found found, int rank, const std::string& why, StoreAnswers& answers);
  void drop_place(SessionId session, const Name& name);
  void rest(Found found);
  void wake(Collective& collective);
  void forget(Found found);
  static bool is_awaited(const Collective& collective);
  static bool has_anybody(const Collective& collective);
  bool has_room_for(const Name& name) const;

  const StoreQuota quota_;
  StoreCharges& charges_;
  std::size_t bytes_ = 0;  // of all contributions
  std::size_t contributions_ = 0;
  std::size_t groups_ = 0;
  std::uint64_t serial_ = 0;
  std::map<Name, Collective> collectives_;
  std::map<SessionId, std::set<Name>> places_;  // where it contributed or is a member
  std::map<std::uint64_t, Name> idle_;          // ad hoc, without epochs; the oldest first
  std::set<Timer> timers_;
};

}  // namespace memspan
