// SPDX-License-Identifier: Apache-2.0
#include "store/state.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/status.h"

namespace memspan {

void StoreState::connect(SessionId id, Member member, Clock::time_point now) {
  auto [found, is_new] =
      sessions_.emplace(id, Session{.member = std::move(member), .heard = now, .timer = {}});
  MEMSPAN_CHECK(is_new);
  arm(id, found->second);
}

StoreAnswers StoreState::apply(SessionId from, StoreRequest request, Clock::time_point now) {
  const auto found = sessions_.find(from);
  MEMSPAN_CHECK(found != sessions_.end());
  Session& session = found->second;
  session.heard = now;
  StoreAnswers answers;
  switch (request.operation) {
    case StoreOperation::kTakeRank:
      answers.push_back({from, take_rank(from, session.member, request)});
      break;
    case StoreOperation::kGiveRank:
      answers.push_back({from, ranks_.give(from, request)});
      break;
    case StoreOperation::kPing:
      answers.push_back({from, {.id = request.id}});
      break;
    default:
      keys_.apply(from, std::move(request), now, answers);
  }
  return answers;
}

StoreAnswer StoreState::take_rank(SessionId from, const Member& member, StoreRequest& request) {
  const std::string& scope = request.key;
  if (!member.job.empty() && StoreRanks::is_jobs_name(scope) && scope != member.job)
    return refuse(
        request.id, Code::kAuth,
        fmt::format("the certificate names the job \"{}\", not {}; MEMSPAN_JOB says which "
                    "job a member means",
                    member.job, quoted_key(scope)));
  if (member.rank && request.rank == -1) request.rank = *member.rank;
  if (member.rank && request.rank != *member.rank)
    return refuse(request.id, Code::kAuth,
                  fmt::format("the certificate names rank {}, not {}", *member.rank, request.rank));
  return ranks_.take(from, member.name, request);
}

// The memory that is kept (as charges count it), and three times that of an answer to every
// possible receiver, for a vector that grows.
std::size_t StoreState::memory_for(const StoreRequest& request) const {
  constexpr std::size_t kAlways = std::size_t{64} << 10;
  const std::size_t kept =
      4 * (request.value.size() + request.expected.size()) + 512 + 8 * request.key.size();
  return kAlways + kept + 3 * (1 + keys_.listeners(request.key)) * sizeof(StoreOutgoing);
}

// Leaves the timer as it is; expire() moves it.
void StoreState::hear(SessionId session, Clock::time_point now) {
  if (auto found = sessions_.find(session); found != sessions_.end()) found->second.heard = now;
}

StoreAnswers StoreState::disconnect(SessionId id) {
  auto session = sessions_.extract(id);
  if (session.empty()) return {};
  if (session.mapped().timer) timers_.erase({*session.mapped().timer, id});
  StoreAnswers answers;
  ranks_.disconnect(id);
  keys_.disconnect(id, answers);
  return answers;
}

StoreState::Expired StoreState::expire(Clock::time_point now) {
  Expired expired;
  keys_.expire(now, expired.answers);
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const SessionId id = timers_.begin()->second;
    Session& session = sessions_.at(id);
    timers_.erase(timers_.begin());
    session.timer.reset();
    if (session.heard + *session.member.silence > now) {
      arm(id, session);
      continue;
    }
    for (StoreOutgoing& out : disconnect(id)) expired.answers.push_back(std::move(out));
    expired.silent.push_back(id);
  }
  return expired;
}

std::optional<Clock::time_point> StoreState::next_deadline() const {
  std::optional<Clock::time_point> next = keys_.next_deadline();
  if (!timers_.empty() && (!next || timers_.begin()->first < *next)) next = timers_.begin()->first;
  return next;
}

void StoreState::arm(SessionId id, Session& session) {
  if (!session.member.silence) return;
  session.timer = session.heard + *session.member.silence;
  timers_.emplace(*session.timer, id);
}

}  // namespace memspan
