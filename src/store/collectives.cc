// SPDX-License-Identifier: Apache-2.0
// Contributions, and the ends of epochs. Membership is in collective_members.cc.
#include "store/collectives.h"

#include <fmt/format.h>

namespace memspan {
namespace {

// Average over all collectives of a store; empty contributions also take memory.
constexpr std::size_t kContributionsPerName = 16;

// Bytes charged for a contribution while its epoch exists, with all copies of the name.
std::size_t contribution_bytes(const std::string& name, std::size_t bytes) {
  return 1024 + 4 * name.size() + bytes;
}

StoreAnswer refusal(std::uint64_t request, const Status& why) {
  return refuse(request, why.code(), why.message());
}

}  // namespace

void StoreCollectives::contribute(SessionId from, const std::string& member, StoreRequest request,
                                  Clock::time_point now, StoreAnswers& answers) {
  const auto is_refused = [&](const Status& why) {
    if (!why.is_ok()) answers.push_back({from, refusal(request.id, why)});
    return !why.is_ok();
  };
  if (is_refused(check(from, request))) return;
  const auto [found, is_new] = collectives_.try_emplace({request.operation, request.keys.front()});
  if (is_new && is_group(found)) ++groups_;
  if (is_new && !idle_.empty() && collectives_.size() - groups_ > quota_.keys)
    forget(collectives_.find(idle_.begin()->second));
  if (is_refused(fit_size(found, request, answers))) return;
  const auto number = is_group(found) ? place_in_group(found, from, member, request)
                                      : place_ad_hoc(found, from, request.rank);
  if (is_refused(number.status())) return;
  if (is_refused(check_members(found, *number, answers))) return;
  wake(found->second);
  wait(found, *number, from, member, std::move(request), now);
  complete(found, *number, answers);
}

Status StoreCollectives::check(SessionId from, const StoreRequest& request) const {
  MEMSPAN_PASS(check_place(request.rank, request.size));
  const Name name{request.operation, request.keys.front()};
  const bool is_group = name.first == Kind::kGroupAllgather;
  if (is_group && request.delta < 0)
    return {Code::kInvalidArgument, fmt::format("the operation's number is {}", request.delta)};
  if (bytes_ + request.value.size() > quota_.bytes ||
      contributions_ >= kContributionsPerName * quota_.keys || !has_room_for(name))
    return {Code::kOutOfMemory, "the store keeps as many groups and contributions as it can"};
  // A member's place costs no more than an empty contribution.
  const std::size_t cost = contribution_bytes(name.second, request.value.size());
  if (auto why = charges_.over(from, is_group ? cost + contribution_bytes(name.second, 0) : cost))
    return {Code::kOutOfMemory, std::move(*why)};
  return Status::ok();
}

// Groups have the same limit as unfinished ad-hoc all-gathers.
bool StoreCollectives::has_room_for(const Name& name) const {
  if (collectives_.contains(name)) return true;
  if (name.first == Kind::kGroupAllgather) return groups_ < quota_.keys;
  return collectives_.size() - groups_ - idle_.size() < quota_.keys;
}

void StoreCollectives::wait(Found found, std::uint64_t number, SessionId from,
                            const std::string& member, StoreRequest request,
                            Clock::time_point now) {
  Contribution mine{.session = from,
                    .member = member,
                    .bytes = std::move(request.value),
                    .gone_because = {},
                    .waiting = request.id,
                    .deadline = std::nullopt};
  if (request.timeout_ms != kNoTimeout) {
    mine.deadline = now + std::chrono::milliseconds(request.timeout_ms);
    timers_.insert({*mine.deadline, found->first, number, request.rank});
  }
  bytes_ += mine.bytes.size();
  ++contributions_;
  charges_.add(from, contribution_bytes(found->first.second, mine.bytes.size()));
  places_[from].insert(found->first);
  found->second.epochs[number].insert_or_assign(request.rank, std::move(mine));
}

// Answers all members once all have contributed. All answers share one value.
void StoreCollectives::complete(Found found, std::uint64_t number, StoreAnswers& answers) {
  Collective& collective = found->second;
  const Epoch& epoch = collective.epochs.at(number);
  if (epoch.size() < collective.size) return;
  const std::string group = fmt::format("{}#{}", found->first.second, number);
  std::vector<std::string_view> parts;
  std::vector<Member> members;
  for (const auto& [rank, part] : epoch) {
    parts.emplace_back(part.bytes);
    members.push_back({.session = part.session,
                       .name = part.member,
                       .gone_because = part.gone_because,
                       .next = 0});
  }
  if (is_creation(found)) parts.emplace_back(group);
  const StoreAnswer answer = all_parts(parts, collective.size);
  end_epoch(found, number, answer, answers);
  if (is_group(found)) return;
  if (!is_creation(found)) {
    forget_members(found);
    for (int rank = 0; Member & member : members) add_member(found, rank++, std::move(member));
    return rest(found);
  }
  for (const Member& member : members) drop_place(member.session, found->first);
  forget(found);
  if (answer.code != Code::kOk) return;
  const Found made = collectives_.try_emplace({Kind::kGroupAllgather, group}).first;
  ++groups_;
  made->second.size = static_cast<std::uint32_t>(members.size());
  for (int rank = 0; Member & member : members) add_member(made, rank++, std::move(member));
}

void StoreCollectives::end_epoch(Found found, std::uint64_t number, const StoreAnswer& answer,
                                 StoreAnswers& answers) {
  const Epoch& epoch = found->second.epochs.at(number);
  for (const auto& [rank, part] : epoch) {
    if (!part.waiting) continue;
    StoreAnswer own = answer;
    own.id = *part.waiting;
    answers.push_back({part.session, std::move(own)});
  }
  while (!epoch.empty()) drop(found, number, epoch.begin()->first);
  found->second.epochs.erase(number);
}

void StoreCollectives::drop(Found found, std::uint64_t number, int rank) {
  Epoch& epoch = found->second.epochs.at(number);
  const Contribution& part = epoch.at(rank);
  if (part.deadline) timers_.erase({*part.deadline, found->first, number, rank});
  bytes_ -= part.bytes.size();
  --contributions_;
  charges_.remove(part.session, contribution_bytes(found->first.second, part.bytes.size()));
  epoch.erase(rank);
}

void StoreCollectives::expire(Clock::time_point now, StoreAnswers& answers) {
  std::vector<Timer> gave_up;  // in creations
  while (!timers_.empty() && timers_.begin()->when <= now) {
    const Timer timer = *timers_.begin();
    timers_.erase(timers_.begin());
    Collective& collective = collectives_.at(timer.name);
    const Epoch& epoch = collective.epochs.at(timer.epoch);
    Contribution& part = collective.epochs.at(timer.epoch).at(timer.rank);
    answers.push_back({part.session, refuse(*part.waiting, Code::kTimeout,
                                            missing_ranks(collective.size, epoch))});
    part.waiting.reset();
    part.deadline.reset();
    if (timer.name.first == Kind::kCreateGroup) gave_up.push_back(timer);
  }
  // Drop them only now: a member that gave up at the same time did come.
  for (const Timer& timer : gave_up) {
    const auto found = collectives_.find(timer.name);
    drop(found, timer.epoch, timer.rank);
    if (found->second.epochs.at(timer.epoch).empty()) forget(found);
  }
}

std::optional<Clock::time_point> StoreCollectives::next_deadline() const {
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->when;
}

}  // namespace memspan
