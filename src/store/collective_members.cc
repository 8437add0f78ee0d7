// SPDX-License-Identifier: Apache-2.0
// Membership in the store's collectives, and what a member's end means for the others.
#include <fmt/format.h>

#include <algorithm>

#include "store/collectives.h"

namespace memspan {
namespace {

// Bytes charged for a member.
std::size_t member_bytes(const std::string& name) {
  return 768 + 2 * name.size();
}

std::string gone(int rank, const std::string& member, const std::string& why) {
  return fmt::format("rank {} ({}) is gone: {}", rank, member, why);
}

Status taken(int rank, const std::string& member) {
  return {Code::kUnavailable, fmt::format("rank {} is taken by {}{}", rank, member, kRankTaken)};
}

}  // namespace

// Sets the collective's size, or returns the conflict.
Status StoreCollectives::fit_size(Found found, const StoreRequest& request, StoreAnswers& answers) {
  Collective& collective = found->second;
  if (is_group(found)) {
    if (collective.members.empty()) collective.size = request.size;
    if (collective.size == request.size) return Status::ok();
    return {Code::kInvalidArgument,
            fmt::format("this member says that the group has {} members, others said {}",
                        request.size, collective.size)};
  }
  if (collective.size == request.size) return Status::ok();
  if (!is_awaited(collective)) {
    while (!collective.epochs.empty())
      end_epoch(found, collective.epochs.begin()->first, {}, answers);
    forget_members(found);
    collective.size = request.size;
    return Status::ok();
  }
  Status why(Code::kInvalidArgument,
             fmt::format("rank {} says that there are {} members, others said {}", request.rank,
                         request.size, collective.size));
  if (is_creation(found)) {
    end_epoch(found, collective.epochs.begin()->first, refuse(0, why.code(), why.message()),
              answers);
    forget(found);
  }
  return why;
}

// Returns the epoch that the member asks for. Its first request adds it as a member.
Result<std::uint64_t> StoreCollectives::place_in_group(Found found, SessionId from,
                                                       const std::string& name,
                                                       const StoreRequest& request) {
  const auto number = static_cast<std::uint64_t>(request.delta);
  if (!found->second.members.contains(request.rank))
    add_member(found, request.rank,
               {.session = from, .name = name, .gone_because = {}, .next = number});
  Member& member = found->second.members.at(request.rank);
  if (!member.gone_because.empty())
    return Status(
        Code::kPeerLost,
        fmt::format("rank {} is gone: {}; a process that takes its place uses another group",
                    request.rank, member.gone_because));
  if (member.session != from) return taken(request.rank, member.name);
  if (number < member.next)
    return Status(Code::kInvalidArgument,
                  fmt::format("operation {} was before; the next is {}", number, member.next));
  member.next = number + 1;
  return number;
}

// The first epoch to which the rank has not contributed.
Result<std::uint64_t> StoreCollectives::place_ad_hoc(Found found, SessionId from, int rank) {
  Collective& collective = found->second;
  const auto choose = [&]() -> Result<std::uint64_t> {
    for (auto& [number, epoch] : collective.epochs) {
      const auto part = epoch.find(rank);
      if (part == epoch.end()) return number;
      if (part->second.session == from && !is_creation(found)) continue;
      if (part->second.waiting) return taken(rank, part->second.member);
      // This part's caller gave up or is gone; the new caller replaces it.
      drop(found, number, rank);
      return number;
    }
    return ++serial_;
  };
  auto number = choose();
  if (!number.is_ok()) return number;
  const auto last = collective.members.find(rank);
  if (last != collective.members.end() && last->second.session != from) forget_members(found);
  return number;
}

// Fails, and ends the epoch for all, if a departed member has not contributed to it.
Status StoreCollectives::check_members(Found found, std::uint64_t number, StoreAnswers& answers) {
  const auto epoch = found->second.epochs.find(number);
  for (const auto& [rank, member] : found->second.members) {
    const bool is_in = epoch != found->second.epochs.end() && epoch->second.contains(rank);
    if (member.gone_because.empty() || is_in) continue;
    Status why(Code::kPeerLost, gone(rank, member.name, member.gone_because));
    if (epoch != found->second.epochs.end())
      end_epoch(found, number, refuse(0, why.code(), why.message()), answers);
    rest(found);
    return why;
  }
  return Status::ok();
}

// An ad-hoc all-gather leaves out a member beyond the quota; the others then miss its death and
// time out.
void StoreCollectives::add_member(Found found, int rank, Member member) {
  const std::size_t cost = member_bytes(found->first.second);
  if (!is_group(found) && charges_.over(member.session, cost)) return;
  charges_.add(member.session, cost);
  places_[member.session].insert(found->first);
  found->second.members[rank] = std::move(member);
}

void StoreCollectives::forget_members(Found found) {
  for (const auto& [rank, member] : found->second.members)
    charges_.remove(member.session, member_bytes(found->first.second));
  found->second.members.clear();
}

StoreAnswer StoreCollectives::leave(SessionId from, const StoreRequest& request,
                                    StoreAnswers& answers) {
  bool was_there = false;
  for (Kind kind : {Kind::kGroupAllgather, Kind::kAllgather, Kind::kCreateGroup}) {
    const auto found = collectives_.find({kind, request.keys.front()});
    auto places = places_.find(from);
    if (found == collectives_.end() || places == places_.end() ||
        places->second.erase(found->first) == 0)
      continue;
    if (places->second.empty()) places_.erase(places);
    was_there = true;
    end_member(found, from, "it left", answers);
  }
  if (was_there) return {.id = request.id};
  return refuse(request.id, Code::kNotFound, "this member is not in the group");
}

void StoreCollectives::disconnect(SessionId session, const std::string& why,
                                  StoreAnswers& answers) {
  const auto places = places_.extract(session);
  if (places.empty()) return;
  StoreAnswers all;
  for (const Name& name : places.mapped())
    if (const auto found = collectives_.find(name); found != collectives_.end())
      end_member(found, session, why, all);
  for (StoreOutgoing& out : all)
    if (out.to != session) answers.push_back(std::move(out));  // an ended session reads nothing
}

// The member's contributions stay, except in a creation, which fails for all.
void StoreCollectives::end_member(Found found, SessionId session, const std::string& why,
                                  StoreAnswers& answers) {
  for (auto& [number, epoch] : found->second.epochs)
    for (auto& [rank, part] : epoch) {
      if (part.session != session) continue;
      part.gone_because = why;
      if (part.waiting)
        answers.push_back(
            {session, refuse(*part.waiting, Code::kPeerLost,
                             fmt::format("this member, rank {}, is gone: {}", rank, why))});
      part.waiting.reset();
      if (part.deadline) timers_.erase({*part.deadline, found->first, number, rank});
      part.deadline.reset();
      if (!is_creation(found)) continue;
      const StoreAnswer ended = refuse(0, Code::kPeerLost, gone(rank, part.member, why));
      end_epoch(found, number, ended, answers);
      return forget(found);
    }
  for (auto& [rank, member] : found->second.members) {
    if (member.session != session || !member.gone_because.empty()) continue;
    member.gone_because = why;
    end_epochs_without(found, rank, why, answers);
  }
  if (has_anybody(found->second))
    rest(found);
  else
    forget(found);
}

void StoreCollectives::end_epochs_without(Found found, int rank, const std::string& why,
                                          StoreAnswers& answers) {
  std::vector<std::uint64_t> ended;
  for (const auto& [number, epoch] : found->second.epochs)
    if (!epoch.contains(rank)) ended.push_back(number);
  const StoreAnswer answer =
      refuse(0, Code::kPeerLost, gone(rank, found->second.members.at(rank).name, why));
  for (std::uint64_t number : ended) end_epoch(found, number, answer, answers);
}

void StoreCollectives::drop_place(SessionId session, const Name& name) {
  const auto places = places_.find(session);
  if (places == places_.end()) return;
  places->second.erase(name);
  if (places->second.empty()) places_.erase(places);
}

// An ad-hoc all-gather without epochs is kept for a while, a group as long as it has members.
void StoreCollectives::rest(Found found) {
  Collective& collective = found->second;
  if (is_group(found) || !collective.epochs.empty() || collective.idle != 0) return;
  collective.idle = ++serial_;
  idle_.emplace(collective.idle, found->first);
  if (idle_.size() > kMostIdle) forget(collectives_.find(idle_.begin()->second));
}

void StoreCollectives::wake(Collective& collective) {
  idle_.erase(collective.idle);
  collective.idle = 0;
}

void StoreCollectives::forget(Found found) {
  wake(found->second);
  std::set<SessionId> sessions;
  for (const auto& [rank, member] : found->second.members) sessions.insert(member.session);
  while (!found->second.epochs.empty()) {
    auto& [number, epoch] = *found->second.epochs.begin();
    for (const auto& [rank, part] : epoch) sessions.insert(part.session);
    StoreAnswers unread;
    end_epoch(found, number, {}, unread);
  }
  forget_members(found);
  for (SessionId session : sessions) drop_place(session, found->first);
  if (is_group(found)) --groups_;
  collectives_.erase(found);
}

bool StoreCollectives::is_awaited(const Collective& collective) {
  return std::any_of(collective.epochs.begin(), collective.epochs.end(), [](const auto& numbered) {
    const Epoch& epoch = numbered.second;
    return std::any_of(epoch.begin(), epoch.end(),
                       [](const auto& part) { return part.second.waiting.has_value(); });
  });
}

bool StoreCollectives::has_anybody(const Collective& collective) {
  for (const auto& [rank, member] : collective.members)
    if (member.gone_because.empty()) return true;
  for (const auto& [number, epoch] : collective.epochs)
    for (const auto& [rank, part] : epoch)
      if (part.gone_because.empty()) return true;
  return false;
}

}  // namespace memspan
