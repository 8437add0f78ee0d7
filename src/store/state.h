// SPDX-License-Identifier: Apache-2.0
// The store without its sockets: sessions, and what they ask of keys, groups, gatherings and
// ranks.
//
//   connect ──► session ── requests ──► StoreKeys, StoreMeetings, ... ──► answers
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
#include "store/gatherings.h"
#include "store/keys.h"
#include "store/meetings.h"
#include "store/quota.h"
#include "store/ranks.h"

namespace memspan {

// One thread at a time.
class StoreState {
 public:
  struct Member {
    std::string name;
    std::optional<Duration> silence = {};  // longer than this is dead
  };
  struct Expired {
    StoreAnswers answers;
    std::vector<SessionId> silent;  // these sessions have ended: close their connections
  };

  // `sizes` as of StoreRanks.
  explicit StoreState(StoreQuota quota = {}, std::map<std::string, std::uint32_t> sizes = {})
      : keys_(quota), meetings_(quota), gatherings_(quota), ranks_(quota, std::move(sizes)) {}

  // A number that was not used before.
  void connect(SessionId session, Member member, Clock::time_point now);
  // What to send now: the request's own answer, if it has one yet, and those of waiting requests
  // and watches of any session that it touched. The request must pass check_request() and come
  // from a session that is connected.
  StoreAnswers apply(SessionId from, StoreRequest request, Clock::time_point now);
  // The session said something, whatever it was.
  void hear(SessionId session, Clock::time_point now);
  // Ends the session; does nothing when it has ended. `why` completes "rank 3 is gone: ...".
  StoreAnswers disconnect(SessionId session, const std::string& why);
  // What is due at `now`: time-outs, and sessions that were silent for too long.
  Expired expire(Clock::time_point now);
  // When expire() will next have something to do, or earlier.
  std::optional<Clock::time_point> next_deadline() const;

 private:
  struct Session {
    Member member;
    Clock::time_point heard;
    std::optional<Clock::time_point> alarm;  // its entry in alarms_, not later than is due
  };
  void arm(SessionId id, Session& session);

  std::map<SessionId, Session> sessions_;
  std::set<std::pair<Clock::time_point, SessionId>> alarms_;
  StoreKeys keys_;
  StoreMeetings meetings_;
  StoreGatherings gatherings_;
  StoreRanks ranks_;
};

}  // namespace memspan
