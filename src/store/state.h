// SPDX-License-Identifier: Apache-2.0
// The store without its sockets: keys, values and who waits for what.
//
// A request is applied at once and answered at once, except a get or a wait for keys that are not
// there yet: it is kept until its last key appears, its time is over or its connection goes.
// Time comes in as an argument, so that a test owns the clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "store/wire.h"

namespace memspan {

// One thread at a time.
class StoreState {
 public:
  using ConnectionId = std::uint64_t;
  struct Outgoing {
    ConnectionId to = 0;
    StoreAnswer answer;
  };
  using Answers = std::vector<Outgoing>;

  // What to send now: the request's own answer, if it has one yet, and those of waiting requests
  // of any connection that it satisfied. The request must pass check_request().
  Answers apply(ConnectionId from, StoreRequest request, Clock::time_point now);
  // Drops what the connection waits for. What it stored stays.
  void disconnect(ConnectionId connection);
  // Answers kTimeout, naming the missing keys, to all whose time was over at `now`.
  Answers expire(Clock::time_point now);
  // When expire() will next have something to do.
  std::optional<Clock::time_point> next_deadline() const;

 private:
  using WaitId = std::uint64_t;
  // Invariant: `missing` is the number of its keys that are not in values_, and is not zero.
  struct Wait {
    ConnectionId connection = 0;
    std::uint64_t request = 0;
    StoreOperation operation = StoreOperation::kWait;
    std::vector<std::string> keys;  // sorted, each once
    std::size_t missing = 0;
    std::optional<Clock::time_point> deadline;
  };

  StoreAnswer change(StoreRequest& request, Answers& answers);
  StoreAnswer add(const StoreRequest& request, Answers& answers);
  StoreAnswer append(const StoreRequest& request, Answers& answers);
  StoreAnswer compare_and_swap(StoreRequest& request, Answers& answers);
  Answers get_or_wait(ConnectionId from, StoreRequest request, Clock::time_point now);

  const std::string* find(const std::string& key) const;
  void put(const std::string& key, std::string value, Answers& answers);
  bool erase(const std::string& key);

  StoreAnswer satisfied(const Wait& wait) const;
  StoreAnswer timed_out(const Wait& wait) const;
  void keep(Wait wait);
  void drop(WaitId id);

  std::map<std::string, std::string> values_;
  std::map<WaitId, Wait> waits_;
  std::map<std::string, std::set<WaitId>> waits_by_key_;  // each wait under each of its keys
  std::set<std::pair<Clock::time_point, WaitId>> deadlines_;
  WaitId next_wait_ = 0;
};

}  // namespace memspan
