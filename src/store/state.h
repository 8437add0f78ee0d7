// SPDX-License-Identifier: Apache-2.0
// The store without its sockets: sessions, and their requests for keys and ranks.
//
//   connect ──► session ── requests ──► StoreKeys, StoreRanks ──► answers
//                  │
//                  └── ends (disconnect, or silent for too long): removes what it owned
//
// Time is an argument and nothing here is random, so that tests are deterministic.
#pragma once

#include "store/keys.h"
#include "store/ranks.h"

namespace memspan {

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
  void connect(SessionId session, Member member, Clock::time_point now);
  // Returns the answers to send now: the request's own, if any yet, and those of waits and watches
  // that it triggers in any session. The request must pass check_request() and come from a
  // connected session. Throws only for lack of memory, and not if memory_for() the request is
  // available.
  StoreAnswers apply(SessionId from, StoreRequest request, Clock::time_point now);
  // Upper bound of the bytes that apply() takes for the request.
  std::size_t memory_for(const StoreRequest& request) const;
  // The session sent something.
  void hear(SessionId session, Clock::time_point now);
  // Ends the session; does nothing if it has ended.
  StoreAnswers disconnect(SessionId session);
  // Returns what is due at `now`: timeouts, and sessions that were silent for too long.
  Expired expire(Clock::time_point now);
  std::size_t sessions() const { return sessions_.size(); }
  const StoreKeys& keys() const { return keys_; }
  std::size_t charged() const { return charges_.all(); }  // bytes kept for sessions
  // The next time when expire() has work, or earlier.
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
  StoreRanks ranks_;
};

}  // namespace memspan
