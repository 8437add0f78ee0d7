// SPDX-License-Identifier: Apache-2.0
// The store without its sockets: sessions, and their requests for keys and ranks.
//
//   connect ──► session ── requests ──► StoreKeys, StoreRanks ──► answers
//                  │
//                  └── ends (disconnect, or silent for too long): removes what it owned
//
// Time is an argument and nothing here is random, so that tests are deterministic.
#pragma once

#include <fmt/format.h>

#include "core/status.h"
#include "store/keys.h"
#include "store/ranks.h"

namespace memspan::inline store {

// One thread at a time.
class StoreState {
 public:
  struct Member {
    std::string name;
    std::optional<Duration> silence = {};  // dead after this silence
    // From its certificate. The member may take no other rank, and none in a scope named after a
    // job other than `job`, unless that is empty.
    std::optional<int> rank = {};
    std::string job = {};
  };
  struct Expired {
    StoreAnswers answers;
    std::vector<SessionId> silent;  // these sessions have ended: close their connections
  };

  // `sizes` as in StoreRanks.
  explicit StoreState(StoreQuota quota = {}, std::map<std::string, std::uint32_t> sizes = {})
      : charges_(quota.memory_share()),
        keys_(quota, charges_),
        ranks_(charges_, std::move(sizes)) {}

  // `session` must be a new number.
  void connect(SessionId id, Member member, Clock::time_point now) {
    auto [found, is_new] =
        sessions_.emplace(id, Session{.member = std::move(member), .heard = now, .timer = {}});
    MEMSPAN_CHECK(is_new);
    arm(id, found->second);
  }

  // Returns the answers to send now: the request's own, if any yet, and those of waits and watches
  // that it triggers in any session. The request must pass check_request() and come from a
  // connected session. Throws only for lack of memory, and not if memory_for() the request is
  // available.
  StoreAnswers apply(SessionId from, StoreRequest request, Clock::time_point now) {
    const auto found = sessions_.find(from);
    MEMSPAN_CHECK(found != sessions_.end());
    Session& session = found->second;
    session.heard = now;
    StoreAnswers answers;
    if (request.operation == StoreOperation::kTakeRank)
      answers.push_back(
          {from, answer_or_refuse(request.id, take_rank(from, session.member, request))});
    else if (request.operation == StoreOperation::kGiveRank)
      answers.push_back({from, answer_or_refuse(request.id, ranks_.give(from, request))});
    else if (request.operation == StoreOperation::kPing)
      answers.push_back({from, {.id = request.id}});
    else
      keys_.apply(from, std::move(request), now, answers);
    return answers;
  }

  // Upper bound of the bytes that apply() takes for the request.
  // The memory that is kept (as charges count it), and three times that of an answer to every
  // possible receiver, for a vector that grows.
  std::size_t memory_for(const StoreRequest& request) const {
    constexpr std::size_t kAlways = std::size_t{64} << 10;
    const std::size_t kept =
        4 * (request.value.size() + request.expected.size()) + 512 + 8 * request.key.size();
    return kAlways + kept + 3 * (1 + keys_.listeners(request.key)) * sizeof(StoreOutgoing);
  }

  // The session sent something.
  // Leaves the timer as it is; expire() moves it.
  void hear(SessionId session, Clock::time_point now) {
    if (auto found = sessions_.find(session); found != sessions_.end()) found->second.heard = now;
  }

  // Ends the session; does nothing if it has ended.
  StoreAnswers disconnect(SessionId id) {
    auto session = sessions_.extract(id);
    if (session.empty()) return {};
    if (session.mapped().timer) timers_.erase({*session.mapped().timer, id});
    StoreAnswers answers;
    ranks_.disconnect(id);
    keys_.disconnect(id, answers);
    return answers;
  }

  // Returns what is due at `now`: timeouts, and sessions that were silent for too long.
  Expired expire(Clock::time_point now) {
    Expired expired;
    keys_.expire(now, expired.answers);
    while (!timers_.empty() && timers_.begin()->first <= now) {
      const SessionId id = timers_.begin()->second;
      Session& session = sessions_.at(id);
      timers_.erase(timers_.begin());
      session.timer.reset();
      if (session.heard + *session.member.silence > now) {
        arm(id, session);
        continue;
      }
      for (StoreOutgoing& out : disconnect(id)) expired.answers.push_back(std::move(out));
      expired.silent.push_back(id);
    }
    return expired;
  }

  std::size_t sessions() const { return sessions_.size(); }
  const StoreKeys& keys() const { return keys_; }
  std::size_t charged() const { return charges_.all(); }  // bytes kept for sessions
  // The next time when expire() has work, or earlier.
  std::optional<Clock::time_point> next_deadline() const {
    std::optional<Clock::time_point> next = keys_.next_deadline();
    if (!timers_.empty() && (!next || timers_.begin()->first < *next))
      next = timers_.begin()->first;
    return next;
  }

 private:
  struct Session {
    Member member;
    Clock::time_point heard;
    std::optional<Clock::time_point> timer;  // its entry in timers_, not later than is due
  };
  Result<StoreAnswer> take_rank(SessionId from, const Member& member, StoreRequest& request) {
    const std::string& scope = request.key;
    if (!member.job.empty() && StoreRanks::is_jobs_name(scope) && scope != member.job)
      return Status(
          Code::kAuth,
          fmt::format("the certificate names the job \"{}\", not {}; MEMSPAN_JOB says which "
                      "job a member means",
                      member.job, quoted_key(scope)));
    if (member.rank && request.rank == -1) request.rank = *member.rank;
    if (member.rank && request.rank != *member.rank)
      return Status(Code::kAuth, fmt::format("the certificate names rank {}, not {}", *member.rank,
                                             request.rank));
    return ranks_.take(from, member.name, request);
  }

  void arm(SessionId id, Session& session) {
    if (!session.member.silence) return;
    session.timer = session.heard + *session.member.silence;
    timers_.emplace(*session.timer, id);
  }

  std::map<SessionId, Session> sessions_;
  std::set<std::pair<Clock::time_point, SessionId>> timers_;
  StoreCharges charges_;
  StoreKeys keys_;
  StoreRanks ranks_;
};

}  // namespace memspan::inline store
