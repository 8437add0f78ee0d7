// SPDX-License-Identifier: Apache-2.0
#include "store/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/check.h"

namespace memspan {
namespace {

std::optional<std::int64_t> parse_counter(std::string_view text) {
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

StoreAnswer refuse(const StoreRequest& request, std::string why) {
  return {.id = request.id, .code = Code::kInvalidArgument, .message = std::move(why)};
}

std::vector<std::string> sorted_once(std::vector<std::string> keys) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

}  // namespace

StoreState::Answers StoreState::apply(ConnectionId from, StoreRequest request,
                                      Clock::time_point now) {
  MEMSPAN_CHECK(!request.keys.empty());
  if (request.operation == StoreOperation::kGet || request.operation == StoreOperation::kWait)
    return get_or_wait(from, std::move(request), now);
  Answers answers;
  StoreAnswer own = change(request, answers);
  answers.push_back({from, std::move(own)});
  return answers;
}

StoreAnswer StoreState::change(StoreRequest& request, Answers& answers) {
  const std::string& key = request.keys.front();
  switch (request.operation) {
    case StoreOperation::kSet:
      put(key, std::move(request.value), answers);
      break;
    case StoreOperation::kAdd:
      return add(request, answers);
    case StoreOperation::kAppend:
      return append(request, answers);
    case StoreOperation::kCompareAndSwap:
      return compare_and_swap(request, answers);
    case StoreOperation::kRemove:
      return {.id = request.id, .number = erase(key) ? 1 : 0};
    case StoreOperation::kGetNow:
      if (const std::string* value = find(key)) return {.id = request.id, .value = *value};
      return {.id = request.id, .code = Code::kNotFound, .message = "there is no such key"};
    case StoreOperation::kGet:
    case StoreOperation::kWait:
      break;  // get_or_wait()
  }
  return {.id = request.id};
}

StoreAnswer StoreState::add(const StoreRequest& request, Answers& answers) {
  const std::string* old = find(request.keys.front());
  std::optional<std::int64_t> sum = old == nullptr ? 0 : parse_counter(*old);
  if (!sum) return refuse(request, "the value is not a 64-bit decimal number");
  if (__builtin_add_overflow(*sum, request.delta, &*sum))
    return refuse(request, fmt::format("{} + {} overflows", *old, request.delta));
  put(request.keys.front(), std::to_string(*sum), answers);
  return {.id = request.id, .number = *sum};
}

StoreAnswer StoreState::append(const StoreRequest& request, Answers& answers) {
  const std::string& key = request.keys.front();
  auto found = values_.find(key);
  const std::size_t before = found == values_.end() ? 0 : found->second.size();
  const std::size_t after = before + request.value.size();
  if (after > kMaxValueBytes)
    return refuse(request, fmt::format("the value would have {} bytes; at most {} are allowed",
                                       after, kMaxValueBytes));
  if (found == values_.end())
    put(key, request.value, answers);
  else
    found->second += request.value;
  return {.id = request.id, .number = static_cast<std::int64_t>(after)};
}

// A missing key counts as an empty value, as what is expected and as what is given back.
StoreAnswer StoreState::compare_and_swap(StoreRequest& request, Answers& answers) {
  const std::string* old = find(request.keys.front());
  const std::string current = old == nullptr ? std::string() : *old;
  if (current != request.expected) return {.id = request.id, .value = current};
  put(request.keys.front(), request.value, answers);
  return {.id = request.id, .value = std::move(request.value)};
}

StoreState::Answers StoreState::get_or_wait(ConnectionId from, StoreRequest request,
                                            Clock::time_point now) {
  Wait wait;
  wait.connection = from;
  wait.request = request.id;
  wait.operation = request.operation;
  wait.keys = sorted_once(std::move(request.keys));
  wait.missing = static_cast<std::size_t>(std::count_if(
      wait.keys.begin(), wait.keys.end(), [&](const auto& key) { return find(key) == nullptr; }));
  if (wait.missing == 0) return {{from, satisfied(wait)}};
  if (request.timeout_ms == 0) return {{from, timed_out(wait)}};
  if (request.timeout_ms != kNoTimeout)
    wait.deadline = now + std::chrono::milliseconds(request.timeout_ms);
  keep(std::move(wait));
  return {};
}

void StoreState::disconnect(ConnectionId connection) {
  std::vector<WaitId> gone;
  for (const auto& [id, wait] : waits_)
    if (wait.connection == connection) gone.push_back(id);
  for (WaitId id : gone) drop(id);
}

StoreState::Answers StoreState::expire(Clock::time_point now) {
  Answers answers;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const WaitId id = deadlines_.begin()->second;
    const Wait& wait = waits_.at(id);
    answers.push_back({wait.connection, timed_out(wait)});
    drop(id);
  }
  return answers;
}

std::optional<Clock::time_point> StoreState::next_deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

const std::string* StoreState::find(const std::string& key) const {
  auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

void StoreState::put(const std::string& key, std::string value, Answers& answers) {
  const bool is_new = values_.insert_or_assign(key, std::move(value)).second;
  auto waiting = waits_by_key_.find(key);
  if (!is_new || waiting == waits_by_key_.end()) return;
  const std::set<WaitId> ids = waiting->second;  // a copy: drop() changes the set
  for (WaitId id : ids) {
    Wait& wait = waits_.at(id);
    if (--wait.missing > 0) continue;
    answers.push_back({wait.connection, satisfied(wait)});
    drop(id);
  }
}

bool StoreState::erase(const std::string& key) {
  if (values_.erase(key) == 0) return false;
  auto waiting = waits_by_key_.find(key);
  if (waiting == waits_by_key_.end()) return true;
  for (WaitId id : waiting->second) ++waits_.at(id).missing;
  return true;
}

StoreAnswer StoreState::satisfied(const Wait& wait) const {
  if (wait.operation == StoreOperation::kWait) return {.id = wait.request};
  return {.id = wait.request, .value = *find(wait.keys.front())};
}

StoreAnswer StoreState::timed_out(const Wait& wait) const {
  std::vector<std::string> missing;
  std::copy_if(wait.keys.begin(), wait.keys.end(), std::back_inserter(missing),
               [&](const auto& key) { return find(key) == nullptr; });
  return {.id = wait.request, .code = Code::kTimeout, .message = "missing " + list_keys(missing)};
}

void StoreState::keep(Wait wait) {
  const WaitId id = next_wait_++;
  for (const std::string& key : wait.keys) waits_by_key_[key].insert(id);
  if (wait.deadline) deadlines_.emplace(*wait.deadline, id);
  waits_.emplace(id, std::move(wait));
}

void StoreState::drop(WaitId id) {
  auto node = waits_.extract(id);
  const Wait& wait = node.mapped();
  if (wait.deadline) deadlines_.erase({*wait.deadline, id});
  for (const std::string& key : wait.keys) {
    auto waiting = waits_by_key_.find(key);
    waiting->second.erase(id);
    if (waiting->second.empty()) waits_by_key_.erase(waiting);
  }
}

}  // namespace memspan
