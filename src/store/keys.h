// SPDX-License-Identifier: Apache-2.0
// The store's keys and values, with their waits, watches and owners.
//
// The store answers a request at once, except a get of a missing key. It keeps that until the key
// appears, its time is over or its session ends. It answers a watch at once and then at every
// change of a key with its prefix, in the order of the changes.
#pragma once

#include <algorithm>
#include <set>

#include "store/charges.h"
#include "store/fields.h"

namespace memspan::inline store {

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
  void apply(SessionId from, StoreRequest request, Clock::time_point now, StoreAnswers& answers) {
    if (request.operation == StoreOperation::kGet) return get(from, request, now, answers);
    answers.push_back({from, answer_or_refuse(request.id, answer(from, request, answers))});
  }

  // Drops the session's waits and watches, and removes the keys that it owns.
  void disconnect(SessionId session, StoreAnswers& answers) {
    auto wait = waits_.lower_bound({session, 0});
    while (wait != waits_.end() && wait->first.first == session) wait = end_wait(wait);
    auto watch = watches_.lower_bound({session, 0});
    while (watch != watches_.end() && watch->first.first == session) watch = end_watch(watch);
    auto owned = owned_.extract(session);
    if (owned.empty()) return;
    for (const std::string_view key : owned.mapped()) {
      const std::string name(key);
      entries_.at(name).owner = 0;  // no index to keep any more
      erase(name, answers);
    }
  }

  // Answers kTimeout to all requests whose time is over at `now`.
  void expire(Clock::time_point now, StoreAnswers& answers) {
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      const auto wait = waits_.find(deadlines_.begin()->second);
      answers.push_back({wait->first.first, timed_out(wait->second.request, wait->second.key)});
      end_wait(wait);
    }
  }

  std::optional<Clock::time_point> next_deadline() const {
    if (deadlines_.empty()) return std::nullopt;
    return deadlines_.begin()->first;
  }

  // The most waits and watches that a change of the key answers.
  std::size_t listeners(const std::string& key) const {
    const auto waiting = waits_by_key_.find(key);
    std::size_t count = waiting == waits_by_key_.end() ? 0 : waiting->second.size();
    visit_watches(key, [&](const std::set<WatchId>& watches) { count += watches.size(); });
    return count;
  }

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

  // Bytes charged for a wait or a watch: itself, and its key or prefix with two map nodes.
  static std::size_t listener_bytes(const std::string& key) { return 512 + 2 * key.size(); }

  static StoreAnswer timed_out(std::uint64_t request, const std::string& key) {
    return refuse(request, {Code::kTimeout, "missing " + quoted_key(key)});
  }

  template <typename Key, typename Id>
  static void forget(std::map<Key, std::set<Id>>& index, const Key& key, const Id& id) {
    auto found = index.find(key);
    if (found == index.end()) return;
    found->second.erase(id);
    if (found->second.empty()) index.erase(found);
  }

  // To all operations but a get.
  Result<StoreAnswer> answer(SessionId from, StoreRequest& request, StoreAnswers& answers) {
    switch (request.operation) {
      case StoreOperation::kSet:
        return set(from, request, answers);
      case StoreOperation::kGetNow:
        return get_now(request);
      case StoreOperation::kCompareAndSwap:
        return compare_and_swap(from, request, answers);
      case StoreOperation::kRemove:
        return StoreAnswer{.id = request.id, .number = erase(request.key, answers) ? 1 : 0};
      case StoreOperation::kList:
        return list(request);
      case StoreOperation::kWatch:
        return watch(from, request);
      case StoreOperation::kUnwatch:
        return unwatch(from, request);
      default:
        return Status(Code::kInternal, "not an operation on keys");
    }
  }

  // A plain set ends the key's ownership, so that a permanent key outlives its previous owner.
  Result<StoreAnswer> set(SessionId from, StoreRequest& request, StoreAnswers& answers) {
    const std::string& key = request.key;
    MEMSPAN_PASS(check_share(from, key, request.value.size()));
    put(from, key, std::move(request.value), request.is_owned ? from : 0, answers);
    return StoreAnswer{.id = request.id};
  }

  // A missing key counts as an empty value, both as expected and as returned.
  Result<StoreAnswer> compare_and_swap(SessionId from, StoreRequest& request,
                                       StoreAnswers& answers) {
    const std::string& key = request.key;
    const SharedText* old = find(key);
    const SharedText current = old == nullptr ? SharedText() : *old;
    if (current.text() != request.expected) return StoreAnswer{.id = request.id, .value = current};
    MEMSPAN_PASS(check_share(from, key, request.value.size()));
    const SharedText desired = std::move(request.value);
    put(from, key, desired, request.is_owned ? std::optional(from) : std::nullopt, answers);
    return StoreAnswer{.id = request.id, .value = desired};
  }

  Result<StoreAnswer> get_now(const StoreRequest& request) const {
    if (const SharedText* value = find(request.key))
      return StoreAnswer{.id = request.id, .value = *value};
    return Status(Code::kNotFound, "there is no such key");
  }

  // Keys and values in turn, in the order of the keys.
  Result<StoreAnswer> list(const StoreRequest& request) const {
    const std::string& prefix = request.key;
    std::vector<std::string_view> texts;
    std::size_t bytes = 0;
    for (auto entry = entries_.lower_bound(prefix);
         entry != entries_.end() && entry->first.starts_with(prefix); ++entry) {
      bytes += entry->first.size() + entry->second.value.size();
      MEMSPAN_PASS(check_store_listing(bytes));
      texts.emplace_back(entry->first);
      texts.emplace_back(entry->second.value.text());
    }
    return StoreAnswer{.id = request.id,
                       .value = encode_record(texts),
                       .number = static_cast<std::int64_t>(texts.size() / 2)};
  }

  Result<StoreAnswer> watch(SessionId from, const StoreRequest& request) {
    const WatchId id{from, request.id};
    if (watches_.contains(id)) return Status(Code::kInvalidArgument, "this id has a watch already");
    const std::size_t bytes = listener_bytes(request.key);
    MEMSPAN_PASS(charges_.check(from, bytes));
    const auto prefix = watches_by_prefix_.try_emplace(request.key).first;
    prefix->second.insert(id);
    watches_.emplace(id, prefix);
    charges_.add(from, bytes);
    return StoreAnswer{.id = request.id};
  }

  Result<StoreAnswer> unwatch(SessionId from, const StoreRequest& request) {
    auto found = watches_.find({from, request.watch});
    if (found == watches_.end()) return Status(Code::kNotFound, "there is no such watch");
    end_watch(found);
    return StoreAnswer{.id = request.id};
  }

  // Answers now, or keeps the request as a wait.
  void get(SessionId from, StoreRequest& request, Clock::time_point now, StoreAnswers& answers) {
    if (const SharedText* value = find(request.key))
      return answers.push_back({from, {.id = request.id, .value = *value}});
    if (request.timeout_ms == 0)
      return answers.push_back({from, timed_out(request.id, request.key)});
    const std::size_t bytes = listener_bytes(request.key);
    if (Status status = charges_.check(from, bytes); !status.is_ok())
      return answers.push_back({from, refuse(request.id, status)});
    const WaitId id{from, next_wait_++};
    Wait wait{.request = request.id, .key = std::move(request.key)};
    if (request.timeout_ms != kNoTimeout) {
      wait.deadline = now + std::chrono::milliseconds(request.timeout_ms);
      deadlines_.emplace(*wait.deadline, id);
    }
    waits_by_key_[wait.key].insert(id);
    waits_.emplace(id, std::move(wait));
    charges_.add(from, bytes);
  }

  const SharedText* find(const std::string& key) const {
    auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second.value;
  }

  // kOutOfMemory if the session may not make the value that long.
  Status check_share(SessionId from, const std::string& key, std::size_t value_bytes) const {
    const auto old = entries_.find(key);
    FormerCharge count;
    FormerCharge bytes;
    if (old != entries_.end()) {
      count = {old->second.payer, 1};
      bytes = {old->second.payer, key.size() + old->second.value.size()};
    }
    MEMSPAN_PASS(counts_.check(from, 1, count));
    return bytes_.check(from, key.size() + value_bytes, bytes);
  }

  // Keeps the owner of an existing key when `owner` is nullopt.
  void put(SessionId from, const std::string& key, SharedText value, std::optional<SessionId> owner,
           StoreAnswers& answers) {
    auto [found, is_new] = entries_.try_emplace(key);
    Entry& entry = found->second;
    if (!is_new) refund(key, entry);
    entry.value = std::move(value);
    entry.payer = from;
    counts_.add(from, 1);
    bytes_.add(from, key.size() + entry.value.size());
    if (owner) own(found->first, entry, *owner);
    tell_watchers(key, StoreEvent::kSet, entry.value, answers);
    const auto waiting = waits_by_key_.find(key);
    if (waiting == waits_by_key_.end()) return;
    const std::set<WaitId> ids = waiting->second;  // a copy: end_wait() changes the set
    for (const WaitId& id : ids) {
      const auto wait = waits_.find(id);
      answers.push_back({id.first, {.id = wait->second.request, .value = entry.value}});
      end_wait(wait);
    }
  }

  void refund(std::string_view key, const Entry& entry) {
    counts_.remove(entry.payer, 1);
    bytes_.remove(entry.payer, key.size() + entry.value.size());
  }

  void own(std::string_view key, Entry& entry, SessionId owner) {
    if (entry.owner == owner) return;
    if (entry.owner != 0) forget(owned_, entry.owner, key);
    if (owner != 0) owned_[owner].insert(key);
    entry.owner = owner;
  }

  bool erase(const std::string& key, StoreAnswers& answers) {
    auto found = entries_.find(key);
    if (found == entries_.end()) return false;
    own(key, found->second, 0);
    refund(key, found->second);
    entries_.erase(found);
    tell_watchers(key, StoreEvent::kRemoved, {}, answers);
    return true;
  }

  Watches::iterator end_watch(Watches::iterator watch) {
    const auto prefix = watch->second;
    charges_.remove(watch->first.first, listener_bytes(prefix->first));
    prefix->second.erase(watch->first);
    if (prefix->second.empty()) watches_by_prefix_.erase(prefix);
    return watches_.erase(watch);
  }

  // Visits the watches of each watched prefix of the key, the longest first.
  // Prefixes of the key that sort before a watched text share no more with the key than that text
  // does. So a step skips any number of other texts, and there are at most two steps per byte.
  template <typename Visit>
  void visit_watches(std::string_view key, Visit visit) const {
    auto next = watches_by_prefix_.upper_bound(key);
    while (next != watches_by_prefix_.begin()) {
      const std::string& prefix = (--next)->first;
      const auto differs =
          std::mismatch(prefix.begin(), prefix.end(), key.begin(), key.end()).first;
      if (differs == prefix.end())
        visit(next->second);
      else
        next = watches_by_prefix_.upper_bound(
            key.substr(0, static_cast<std::size_t>(differs - prefix.begin())));
    }
  }

  void tell_watchers(const std::string& key, StoreEvent event, const SharedText& value,
                     StoreAnswers& answers) const {
    if (watches_.empty()) return;
    const SharedText name = key;
    visit_watches(key, [&](const std::set<WatchId>& watches) {
      for (const auto& [session, id] : watches)
        answers.push_back({session, {.id = id, .value = value, .event = event, .key = name}});
    });
  }

  Waits::iterator end_wait(Waits::iterator found) {
    const auto& [id, wait] = *found;
    charges_.remove(id.first, listener_bytes(wait.key));
    if (wait.deadline) deadlines_.erase({*wait.deadline, id});
    forget(waits_by_key_, wait.key, id);
    return waits_.erase(found);
  }

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

}  // namespace memspan::inline store
