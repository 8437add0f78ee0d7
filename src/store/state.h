// SPDX-License-Identifier: Apache-2.0
// The store without its sockets: sessions, and what they ask of keys, collectives and ranks.
//
//   connect ──► session ── requests ──► StoreKeys, StoreCollectives, ... ──► answers
//                  │
//                  └── ends (disconnect, or silent for too long): what it owned goes with it
//
// Time comes in as an argument and nothing here is random, so that a test owns the world.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "store/charges.h"
#include "store/collectives.h"
#include "store/keys.h"
#include "store/quota.h"
#include "store/ranks.h"

namespace memspan {

// One thread at a time.
class StoreState {
 public:
  struct Member {
    std::string name;
    std::optional<Duration> silence = {};  // longer than this is dead
    // What its certificate names; it takes no other rank, and when `job` is not empty, none of a
    // scope that is another job's name.
    std::optional<int> rank = {};
    std::string job = {};
  };
  struct Expired {
    StoreAnswers answers;
    std::vector<SessionId> silent;  // these sessions have ended: close their connections
  };

  // `sizes` as of StoreRanks.
  explicit StoreState(StoreQuota quota = {}, std::map<std::string, std::uint32_t> sizes = {})
      : charges_(quota),
        keys_(quota, charges_),
        collectives_(quota, charges_),
        ranks_(quota, charges_, std::move(sizes)) {}

  // A number that was not used before.
  void connect(SessionId session, Member member, Clock::time_point now);
  // What to send now: the request's own answer, if it has one yet, and those of waiting requests
  // and watches of any session that it touched. The request must pass check_request() and come
  // from a session that is connected.
  // Exceptions: for lack of memory only, and not where memory_for() the request is free.
  StoreAnswers apply(SessionId from, StoreRequest request, Clock::time_point now);
  // More than apply() takes for the request, in bytes.
  std::size_t memory_for(const StoreRequest& request) const;
  // The session said something, whatever it was.
  void hear(SessionId session, Clock::time_point now);
  // Ends the session; does nothing when it has ended. `why` completes "rank 3 is gone: ...".
  StoreAnswers disconnect(SessionId session, const std::string& why);
  // What is due at `now`: time-outs, and sessions that were silent for too long.
  Expired expire(Clock::time_point now);
  std::size_t sessions() const { return sessions_.size(); }
  const StoreKeys& keys() const { return keys_; }
  std::size_t charged() const { return charges_.all(); }  // bytes kept for sessions
  // When expire() will next have something to do, or earlier.
  std::optional<Clock::time_point> next_deadline() const;

 private:
  struct Session {
    Member member;
    Clock::time_point heard;
    std::optional<Clock::time_point> timer;  // its entry in timers_, not later than is due
  };
  StoreAnswer take_rank(SessionId from, const Member& member, StoreRequest& request);
  void arm(SessionId id, Session& session);

  std::map<SessionId, Session> sessions_;
  std::set<std::pair<Clock::time_point, SessionId>> timers_;
  StoreCharges charges_;
  StoreKeys keys_;
  StoreCollectives collectives_;
  StoreRanks ranks_;
};

}  // namespace memspan
