// SPDX-License-Identifier: Apache-2.0
#include "simulation/reference.h"

#include <fmt/format.h>

namespace memspan::simulation {
namespace {

std::string name_of(SessionId session, const StoreRequest& request) {
  return fmt::format("session {}'s {} (request {})", session, operation_name(request.operation),
                     request.id);
}

}  // namespace

void Reference::apply(SessionId from, const StoreRequest& request, Clock::time_point now) {
  Pending pending{.request = request, .deadline = std::nullopt};
  if (request.timeout_ms != kNoTimeout)
    pending.deadline = now + std::chrono::milliseconds(request.timeout_ms);
  pending_.insert_or_assign({from, request.id}, std::move(pending));
  const std::string& key = request.key;
  switch (request.operation) {
    case StoreOperation::kSet:
    case StoreOperation::kCompareAndSwap:
    case StoreOperation::kRemove:
      change(key, {.session = from, .request = request});
      break;
    case StoreOperation::kWatch:
      watches_[{from, request.id}] = {.prefix = key, .begin = changes_.size()};
      break;
    case StoreOperation::kUnwatch:
      watches_.at({from, request.watch}).end = changes_.size();
      break;
    default:
      break;
  }
}

void Reference::change(const std::string& key, const Operation& operation) {
  KeyState& state = keys_[key];
  const auto step = take_step(state, operation);  // without an answer nothing contradicts it
  state = step->after;
  if (step->has_changed) changes_.push_back({key, state.value});
  if (!state.value) keys_.erase(key);
}

void Reference::end(SessionId session) {
  live_.erase(session);
  const auto keys = keys_;  // a copy: change() erases
  for (const auto& [key, state] : keys)
    change(key, {.session = session, .is_end_of_session = true});
  std::erase_if(ranks_, [&](const auto& rank) { return rank.second == session; });
  std::erase_if(pending_, [&](const auto& entry) { return entry.first.first == session; });
  std::erase_if(watches_, [&](const auto& entry) { return entry.first.first == session; });
}

std::string Reference::judge(SessionId to, const StoreAnswer& answer, Clock::time_point now) {
  if (!is_live(to)) return fmt::format("session {} has ended and is answered", to);
  if (answer.event != StoreEvent::kNone) {
    const auto watch = watches_.find({to, answer.id});
    if (watch != watches_.end() && !watch->second.end) return {};
    return fmt::format("session {} is told of \"{}\" and has no such watch", to, answer.key.text());
  }
  auto pending = pending_.extract({to, answer.id});
  if (pending.empty())
    return fmt::format("session {}'s request {} is answered, but does not wait", to, answer.id);
  const StoreRequest& request = pending.mapped().request;
  const auto& deadline = pending.mapped().deadline;
  if (answer.code == Code::kTimeout && (!deadline || now < *deadline))
    return name_of(to, request) + " is over before its time";
  if (request.operation == StoreOperation::kTakeRank) return judge_rank(to, request, answer);
  return {};
}

std::string Reference::judge_rank(SessionId to, const StoreRequest& request,
                                  const StoreAnswer& answer) {
  int lowest = 0;
  while (ranks_.contains(lowest)) ++lowest;
  const int wanted = request.rank >= 0 ? request.rank : lowest;
  const bool is_free = !ranks_.contains(wanted) && static_cast<std::uint32_t>(wanted) < members_;
  if (is_free != (answer.code == Code::kOk))
    return fmt::format("session {} asks for rank {} of {}, which is{} free, and gets code {}", to,
                       wanted, members_, is_free ? "" : " not", static_cast<int>(answer.code));
  if (!is_free) return {};
  ranks_[wanted] = to;
  if (answer.number == wanted) return {};
  return fmt::format("session {} gets rank {} and not {}", to, answer.number, wanted);
}

std::string Reference::judge_silence(Clock::time_point now) const {
  for (const auto& [id, pending] : pending_) {
    if (pending.deadline && *pending.deadline < now)
      return name_of(id.first, pending.request) + " is not answered although its time is over";
    if (!may_wait(pending.request))
      return name_of(id.first, pending.request) + " has nothing to wait for and is not answered";
  }
  return {};
}

bool Reference::may_wait(const StoreRequest& request) const {
  return request.operation == StoreOperation::kGet && !keys_.contains(request.key);
}

std::vector<std::string> Reference::listing() const {
  std::vector<std::string> texts;
  for (const auto& [key, state] : keys_) {
    texts.push_back(key);
    texts.push_back(*state.value);
  }
  return texts;
}

std::vector<Change> Reference::changes_for(const Id& watch) const {
  const Watched& watched = watches_.at(watch);
  std::vector<Change> changes;
  for (std::size_t i = watched.begin; i < watched.end.value_or(changes_.size()); ++i)
    if (changes_[i].key.starts_with(watched.prefix)) changes.push_back(changes_[i]);
  return changes;
}

}  // namespace memspan::simulation
