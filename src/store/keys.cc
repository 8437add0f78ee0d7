// SPDX-License-Identifier: Apache-2.0
#include "store/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace memspan {
namespace {

std::optional<std::int64_t> parse_counter(std::string_view text) {
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

StoreAnswer invalid_request(const StoreRequest& request, std::string why) {
  return refuse(request.id, Code::kInvalidArgument, std::move(why));
}

StoreAnswer full(const StoreRequest& request, std::string why) {
  return refuse(request.id, Code::kOutOfMemory, std::move(why));
}

std::vector<std::string> sorted_once(std::vector<std::string> keys) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  keys.shrink_to_fit();
  return keys;
}

// Bytes charged for a wait: itself, and each key twice, in the wait and in the index with two map
// nodes.
std::size_t wait_bytes(const std::vector<std::string>& keys) {
  std::size_t bytes = 256;
  for (const std::string& key : keys) bytes += 256 + 2 * key.size();
  return bytes;
}

// Itself, and its prefix with two map nodes.
std::size_t watch_bytes(const std::string& prefix) {
  return 512 + 2 * prefix.size();
}

// The key's owner after a request: the caller if it asks for that, else unchanged.
std::optional<SessionId> owner_after(SessionId from, const StoreRequest& request) {
  if (request.is_owned) return from;
  return std::nullopt;
}

// No answer shares the value, and it can grow to `bytes` in place.
bool has_room(const SharedText& value, std::size_t bytes) {
  return value.is_sole() && value.text().capacity() >= bytes;
}

template <typename Key, typename Id>
void forget(std::map<Key, std::set<Id>>& index, const Key& key, const Id& id) {
  auto found = index.find(key);
  if (found == index.end()) return;
  found->second.erase(id);
  if (found->second.empty()) index.erase(found);
}

}  // namespace

void StoreKeys::apply(SessionId from, StoreRequest request, Clock::time_point now,
                      StoreAnswers& answers) {
  if (request.operation == StoreOperation::kGet || request.operation == StoreOperation::kWait) {
    if (auto own = get_or_wait(from, std::move(request), now))
      answers.push_back({from, std::move(*own)});
    return;
  }
  StoreAnswer own = answer(from, request, answers);
  answers.push_back({from, std::move(own)});
}

StoreAnswer StoreKeys::answer(SessionId from, StoreRequest& request, StoreAnswers& answers) {
  switch (request.operation) {
    case StoreOperation::kSet:
      return set(from, request, answers);
    case StoreOperation::kAdd:
      return add(from, request, answers);
    case StoreOperation::kAppend:
      return append(from, request, answers);
    case StoreOperation::kCompareAndSwap:
      return compare_and_swap(from, request, answers);
    case StoreOperation::kRemove:
      return {.id = request.id, .number = erase(request.keys.front(), answers) ? 1 : 0};
    case StoreOperation::kGetNow:
      return get_now(request);
    case StoreOperation::kList:
      return list(request);
    case StoreOperation::kWatch:
      return watch(from, request);
    case StoreOperation::kUnwatch:
      return unwatch(from, request);
    default:
      return refuse(request.id, Code::kInternal, "not an operation on keys");
  }
}

// A plain set ends the key's ownership, so that a permanent key outlives its previous owner.
StoreAnswer StoreKeys::set(SessionId from, StoreRequest& request, StoreAnswers& answers) {
  const std::string& key = request.keys.front();
  if (auto why = over_share(from, key, request.value.size())) return full(request, std::move(*why));
  put(from, key, std::move(request.value), request.is_owned ? from : 0, answers);
  return {.id = request.id};
}

StoreAnswer StoreKeys::add(SessionId from, const StoreRequest& request, StoreAnswers& answers) {
  const std::string& key = request.keys.front();
  const SharedText* old = find(key);
  std::optional<std::int64_t> sum = old == nullptr ? 0 : parse_counter(old->text());
  if (!sum) return invalid_request(request, "the value is not a 64-bit decimal number");
  if (__builtin_add_overflow(*sum, request.delta, &*sum))
    return invalid_request(request, fmt::format("{} + {} overflows", old->text(), request.delta));
  std::string text = std::to_string(*sum);
  if (auto why = over_share(from, key, text.size())) return full(request, std::move(*why));
  put(from, key, std::move(text), owner_after(from, request), answers);
  return {.id = request.id, .number = *sum};
}

StoreAnswer StoreKeys::append(SessionId from, const StoreRequest& request, StoreAnswers& answers) {
  const std::string& key = request.keys.front();
  const auto found = entries_.find(key);
  const std::size_t before = found == entries_.end() ? 0 : found->second.value.size();
  const std::size_t after = before + request.value.size();
  if (after > kMaxValueBytes)
    return invalid_request(
        request, fmt::format("the value would have {} bytes; at most {} are allowed", after,
                             kMaxValueBytes));
  if (auto why = over_share(from, key, after)) return full(request, std::move(*why));
  // Take the value out if it can grow in place; else every append would copy all of it. All
  // allocations come before that.
  std::string value;
  if (found != entries_.end() && !has_room(found->second.value, after)) {
    value.reserve(std::min(kMaxValueBytes, std::max(after, 2 * before)));
    value = found->second.value.text();
  } else if (found != entries_.end()) {
    bytes_.remove(found->second.payer, before);
    value = found->second.value.take();
  }
  put(from, key, std::move(value += request.value), owner_after(from, request), answers);
  return {.id = request.id, .number = static_cast<std::int64_t>(after)};
}

// A missing key counts as an empty value, both as expected and as returned.
StoreAnswer StoreKeys::compare_and_swap(SessionId from, StoreRequest& request,
                                        StoreAnswers& answers) {
  const std::string& key = request.keys.front();
  const SharedText* old = find(key);
  const SharedText current = old == nullptr ? SharedText() : *old;
  if (current.text() != request.expected) return {.id = request.id, .value = current};
  if (auto why = over_share(from, key, request.value.size())) return full(request, std::move(*why));
  const SharedText desired = std::move(request.value);
  put(from, key, desired, owner_after(from, request), answers);
  return {.id = request.id, .value = desired};
}

StoreAnswer StoreKeys::get_now(const StoreRequest& request) const {
  if (const SharedText* value = find(request.keys.front()))
    return {.id = request.id, .value = *value};
  return refuse(request.id, Code::kNotFound, "there is no such key");
}

// Keys and values in turn, in the order of the keys.
StoreAnswer StoreKeys::list(const StoreRequest& request) const {
  const std::string& prefix = request.keys.front();
  std::vector<std::string_view> texts;
  std::size_t bytes = 0;
  for (auto entry = entries_.lower_bound(prefix);
       entry != entries_.end() && entry->first.starts_with(prefix); ++entry) {
    bytes += entry->first.size() + entry->second.value.size();
    if (Status status = check_store_listing(bytes); !status.is_ok())
      return invalid_request(request, status.message());
    texts.emplace_back(entry->first);
    texts.emplace_back(entry->second.value.text());
  }
  return {.id = request.id,
          .value = pack_texts(texts),
          .number = static_cast<std::int64_t>(texts.size() / 2)};
}

StoreAnswer StoreKeys::watch(SessionId from, const StoreRequest& request) {
  const WatchId id{from, request.id};
  if (watches_.contains(id)) return invalid_request(request, "this id has a watch already");
  const std::size_t bytes = watch_bytes(request.keys.front());
  if (auto why = charges_.over(from, bytes)) return full(request, std::move(*why));
  const auto prefix = watches_by_prefix_.try_emplace(request.keys.front()).first;
  prefix->second.insert(id);
  watches_.emplace(id, prefix);
  charges_.add(from, bytes);
  return {.id = request.id};
}

StoreAnswer StoreKeys::unwatch(SessionId from, const StoreRequest& request) {
  auto found = watches_.find({from, static_cast<std::uint64_t>(request.delta)});
  if (found == watches_.end()) return refuse(request.id, Code::kNotFound, "there is no such watch");
  end_watch(found);
  return {.id = request.id};
}

StoreKeys::Watches::iterator StoreKeys::end_watch(Watches::iterator watch) {
  const auto prefix = watch->second;
  charges_.remove(watch->first.first, watch_bytes(prefix->first));
  prefix->second.erase(watch->first);
  if (prefix->second.empty()) watches_by_prefix_.erase(prefix);
  return watches_.erase(watch);
}

std::optional<StoreAnswer> StoreKeys::get_or_wait(SessionId from, StoreRequest request,
                                                  Clock::time_point now) {
  const auto is_missing = [&](const std::string& key) { return find(key) == nullptr; };
  Wait wait;
  wait.session = from;
  wait.request = request.id;
  wait.operation = request.operation;
  wait.keys = std::move(request.keys);
  if (std::none_of(wait.keys.begin(), wait.keys.end(), is_missing)) return satisfied(wait);
  if (request.timeout_ms == 0) {
    wait.keys = sorted_once(std::move(wait.keys));
    return timed_out(wait);
  }
  if (auto why = charges_.over(from, wait_bytes(wait.keys))) return full(request, std::move(*why));
  wait.keys = sorted_once(std::move(wait.keys));
  wait.missing =
      static_cast<std::size_t>(std::count_if(wait.keys.begin(), wait.keys.end(), is_missing));
  if (request.timeout_ms != kNoTimeout)
    wait.deadline = now + std::chrono::milliseconds(request.timeout_ms);
  keep(std::move(wait));
  return std::nullopt;
}

void StoreKeys::disconnect(SessionId session, StoreAnswers& answers) {
  if (auto waiting = waits_by_session_.find(session); waiting != waits_by_session_.end()) {
    const std::set<WaitId> gone = waiting->second;  // a copy: drop() changes the set
    for (WaitId id : gone) drop(id);
  }
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

void StoreKeys::expire(Clock::time_point now, StoreAnswers& answers) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const WaitId id = deadlines_.begin()->second;
    const Wait& wait = waits_.at(id);
    answers.push_back({wait.session, timed_out(wait)});
    drop(id);
  }
}

std::optional<Clock::time_point> StoreKeys::next_deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

std::size_t StoreKeys::listeners(const std::string& key) const {
  const auto waiting = waits_by_key_.find(key);
  std::size_t count = waiting == waits_by_key_.end() ? 0 : waiting->second.size();
  visit_watches(key, [&](const std::set<WatchId>& watches) { count += watches.size(); });
  return count;
}

// Prefixes of the key that sort before a watched text share no more with the key than that text
// does. So a step skips any number of other texts, and there are at most two steps per byte.
template <typename Visit>
void StoreKeys::visit_watches(std::string_view key, Visit visit) const {
  auto next = watches_by_prefix_.upper_bound(key);
  while (next != watches_by_prefix_.begin()) {
    const std::string& prefix = (--next)->first;
    const auto differs = std::mismatch(prefix.begin(), prefix.end(), key.begin(), key.end()).first;
    if (differs == prefix.end())
      visit(next->second);
    else
      next = watches_by_prefix_.upper_bound(
          key.substr(0, static_cast<std::size_t>(differs - prefix.begin())));
  }
}

const SharedText* StoreKeys::find(const std::string& key) const {
  auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second.value;
}

std::optional<std::string> StoreKeys::over_share(SessionId from, const std::string& key,
                                                 std::size_t value_bytes) const {
  const auto old = entries_.find(key);
  FormerCharge count;
  FormerCharge bytes;
  if (old != entries_.end()) {
    count = {old->second.payer, 1};
    bytes = {old->second.payer, key.size() + old->second.value.size()};
  }
  if (auto why = counts_.over(from, 1, count)) return why;
  return bytes_.over(from, key.size() + value_bytes, bytes);
}

void StoreKeys::put(SessionId from, const std::string& key, SharedText value,
                    std::optional<SessionId> owner, StoreAnswers& answers) {
  auto [found, is_new] = entries_.try_emplace(key);
  Entry& entry = found->second;
  if (!is_new) refund(key, entry);
  entry.value = std::move(value);
  entry.payer = from;
  counts_.add(from, 1);
  bytes_.add(from, key.size() + entry.value.size());
  if (owner) own(found->first, entry, *owner);
  tell_watchers(key, StoreEvent::kSet, entry.value, answers);
  auto waiting = waits_by_key_.find(key);
  if (!is_new || waiting == waits_by_key_.end()) return;
  const std::set<WaitId> ids = waiting->second;  // a copy: drop() changes the set
  for (WaitId id : ids) {
    Wait& wait = waits_.at(id);
    if (--wait.missing > 0) continue;
    answers.push_back({wait.session, satisfied(wait)});
    drop(id);
  }
}

void StoreKeys::refund(std::string_view key, const Entry& entry) {
  counts_.remove(entry.payer, 1);
  bytes_.remove(entry.payer, key.size() + entry.value.size());
}

void StoreKeys::own(std::string_view key, Entry& entry, SessionId owner) {
  if (entry.owner == owner) return;
  if (entry.owner != 0) forget(owned_, entry.owner, key);
  if (owner != 0) owned_[owner].insert(key);
  entry.owner = owner;
}

bool StoreKeys::erase(const std::string& key, StoreAnswers& answers) {
  auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  own(key, found->second, 0);
  refund(key, found->second);
  entries_.erase(found);
  tell_watchers(key, StoreEvent::kRemoved, {}, answers);
  auto waiting = waits_by_key_.find(key);
  if (waiting == waits_by_key_.end()) return true;
  for (WaitId id : waiting->second) ++waits_.at(id).missing;
  return true;
}

void StoreKeys::tell_watchers(const std::string& key, StoreEvent event, const SharedText& value,
                              StoreAnswers& answers) const {
  if (watches_.empty()) return;
  const SharedText name = key;
  visit_watches(key, [&](const std::set<WatchId>& watches) {
    for (const auto& [session, id] : watches)
      answers.push_back({session, {.id = id, .value = value, .event = event, .key = name}});
  });
}

StoreAnswer StoreKeys::satisfied(const Wait& wait) const {
  if (wait.operation == StoreOperation::kWait) return {.id = wait.request};
  return {.id = wait.request, .value = *find(wait.keys.front())};
}

StoreAnswer StoreKeys::timed_out(const Wait& wait) const {
  std::vector<std::string> missing;
  std::copy_if(wait.keys.begin(), wait.keys.end(), std::back_inserter(missing),
               [&](const auto& key) { return find(key) == nullptr; });
  return refuse(wait.request, Code::kTimeout, "missing " + list_keys(missing));
}

void StoreKeys::keep(Wait wait) {
  const WaitId id = next_wait_++;
  charges_.add(wait.session, wait_bytes(wait.keys));
  for (const std::string& key : wait.keys) waits_by_key_[key].insert(id);
  waits_by_session_[wait.session].insert(id);
  if (wait.deadline) deadlines_.emplace(*wait.deadline, id);
  waits_.emplace(id, std::move(wait));
}

void StoreKeys::drop(WaitId id) {
  auto node = waits_.extract(id);
  const Wait& wait = node.mapped();
  charges_.remove(wait.session, wait_bytes(wait.keys));
  if (wait.deadline) deadlines_.erase({*wait.deadline, id});
  for (const std::string& key : wait.keys) forget(waits_by_key_, key, id);
  forget(waits_by_session_, wait.session, id);
}

}  // namespace memspan
