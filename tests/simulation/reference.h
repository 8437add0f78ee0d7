// SPDX-License-Identifier: Apache-2.0
// A second store, as simple and slow as can be, which is told everything that the real one is told
// and says what must hold there: who must have been answered, what watches see, whose ranks are
// whose. Of the answers to operations on keys it knows nothing: those are judged from the clients'
// side (linearizability.h).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "simulation/key_model.h"
#include "store/wire.h"

namespace memspan::simulation {

// What a watch is told. A value.
struct Change {
  std::string key;
  std::optional<std::string> value;  // nullopt: removed
  bool operator==(const Change&) const = default;
};

// A watch, from the moment when the store heard of it.
struct Watched {
  std::string prefix;
  std::size_t begin = 0;  // of all changes, the first that it sees
  std::optional<std::size_t> end = {};
};

// Every function that judges returns what is wrong, or nothing. One thread at a time.
class Reference {
 public:
  using Id = std::pair<SessionId, std::uint64_t>;  // of a request or a watch

  explicit Reference(std::uint32_t members) : members_(members) {}

  void connect(SessionId session) { live_.insert(session); }
  void apply(SessionId from, const StoreRequest& request, Clock::time_point now);
  // Every key that it owned, its ranks, watches and requests go.
  void end(SessionId session);
  bool is_live(SessionId session) const { return live_.contains(session); }

  // For each answer that the store gave at `now`.
  std::string judge(SessionId to, const StoreAnswer& answer, Clock::time_point now);
  // After all answers of one step: whether somebody was forgotten.
  std::string judge_silence(Clock::time_point now) const;
  // Keys and values in turn, as the store lists them.
  std::vector<std::string> listing() const;
  // What that watch must have been told by now.
  std::vector<Change> changes_for(const Id& watch) const;

 private:
  struct Pending {
    StoreRequest request;
    std::optional<Clock::time_point> deadline;
  };
  void change(const std::string& key, const Operation& operation);
  std::string judge_rank(SessionId to, const StoreRequest& request, const StoreAnswer& answer);
  bool may_wait(const StoreRequest& request) const;

  const std::uint32_t members_;  // as many ranks
  std::set<SessionId> live_;
  std::map<std::string, KeyState> keys_;
  std::vector<Change> changes_;
  std::map<Id, Watched> watches_;
  std::map<Id, Pending> pending_;
  std::map<int, SessionId> ranks_;  // of the one scope
};

}  // namespace memspan::simulation
