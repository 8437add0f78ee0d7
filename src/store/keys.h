// SPDX-License-Identifier: Apache-2.0
// The store's keys and values, with their waits, watches and owners.
//
// The store answers a request at once, except a get of a missing key. It keeps that until the key
// appears, its time is over or its session ends. It answers a watch at once and then at every
// change of a key with its prefix, in the order of the changes.
#pragma once

#include <set>

#include "store/charges.h"

namespace memspan {

// An answer and its session. A value.
struct StoreOutgoing {
  SessionId to = 0;
  StoreAnswer answer;
};
using StoreAnswers = std::vector<StoreOutgoing>;

// One thread at a time.
class StoreKeys {
 public:
  // `charges` must outlive it.
  StoreKeys(const StoreQuota& quota, StoreCharges& charges)
      : charges_(charges), counts_(quota.key_share()), bytes_(quota.value_share()) {}

  // Applies an operation on keys. Appends the answers to send now: the request's own, if it has one
  // yet, and those of the waits and watches that it triggers.
  void apply(SessionId from, StoreRequest request, Clock::time_point now, StoreAnswers& answers);
  // Drops the session's waits and watches, and removes the keys that it owns.
  void disconnect(SessionId session, StoreAnswers& answers);
  // Answers kTimeout to all requests whose time is over at `now`.
  void expire(Clock::time_point now, StoreAnswers& answers);
  std::optional<Clock::time_point> next_deadline() const;
  // The most waits and watches that a change of the key answers.
  std::size_t listeners(const std::string& key) const;
  std::size_t size() const { return entries_.size(); }
  std::size_t bytes() const { return bytes_.all(); }  // of keys and values
  std::size_t waits() const { return waits_.size(); }
  std::size_t watches() const { return watches_.size(); }

 private:
  struct Entry {
    SharedText value;
    SessionId owner = 0;  // 0: not owned
    SessionId payer = 0;  // the session that has written it last: the key is charged to it
  };
  // A get of a key that is not in entries_.
  struct Wait {
    std::uint64_t request = 0;
    std::string key;
    std::optional<Clock::time_point> deadline = {};
  };
  using WaitId = std::pair<SessionId, std::uint64_t>;
  using Waits = std::map<WaitId, Wait>;
  using WatchId = std::pair<SessionId, std::uint64_t>;  // the request's id names the watch
  using Prefixes = std::map<std::string, std::set<WatchId>, std::less<>>;
  using Watches = std::map<WatchId, Prefixes::iterator>;

  // Nullopt: later.
  std::optional<StoreAnswer> answer(SessionId from, StoreRequest& request, Clock::time_point now,
                                    StoreAnswers& answers);
  StoreAnswer set(SessionId from, StoreRequest& request, StoreAnswers& answers);
  StoreAnswer compare_and_swap(SessionId from, StoreRequest& request, StoreAnswers& answers);
  StoreAnswer get_now(const StoreRequest& request) const;
  StoreAnswer list(const StoreRequest& request) const;
  StoreAnswer watch(SessionId from, const StoreRequest& request);
  StoreAnswer unwatch(SessionId from, const StoreRequest& request);
  std::optional<StoreAnswer> get(SessionId from, StoreRequest& request, Clock::time_point now);

  const SharedText* find(const std::string& key) const;
  // The message of kOutOfMemory if the session may not make the value that long, else nullopt.
  std::optional<std::string> over_share(SessionId from, const std::string& key,
                                        std::size_t value_bytes) const;
  // Keeps the owner of an existing key when `owner` is nullopt.
  void put(SessionId from, const std::string& key, SharedText value, std::optional<SessionId> owner,
           StoreAnswers& answers);
  void refund(std::string_view key, const Entry& entry);
  void own(std::string_view key, Entry& entry, SessionId owner);
  bool erase(const std::string& key, StoreAnswers& answers);
  Watches::iterator end_watch(Watches::iterator watch);
  // Visits the watches of each watched prefix of the key, the longest first.
  template <typename Visit>
  void visit_watches(std::string_view key, Visit visit) const;
  void tell_watchers(const std::string& key, StoreEvent event, const SharedText& value,
                     StoreAnswers& answers) const;

  Waits::iterator end_wait(Waits::iterator wait);

  StoreCharges& charges_;
  StoreCharges counts_;  // of keys
  StoreCharges bytes_;   // of keys and values
  std::map<std::string, Entry> entries_;
  std::map<SessionId, std::set<std::string_view>> owned_;  // of the keys in entries_
  Waits waits_;
  std::map<std::string, std::set<WaitId>> waits_by_key_;
  std::set<std::pair<Clock::time_point, WaitId>> deadlines_;
  std::uint64_t next_wait_ = 0;
  Prefixes watches_by_prefix_;
  Watches watches_;
};

}  // namespace memspan
