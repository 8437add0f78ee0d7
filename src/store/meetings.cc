// SPDX-License-Identifier: Apache-2.0
#include "store/meetings.h"

#include <fmt/format.h>

namespace memspan {
namespace {

StoreAnswer invalid(const StoreRequest& request, std::string why) {
  return refuse(request.id, Code::kInvalidArgument, std::move(why));
}

// On average over all groups that a store keeps; empty parts take room, too.
constexpr std::size_t kPartsPerGroup = 16;

// What a part costs while its operation is there, with all that names the group.
std::size_t part_bytes(const std::string& name, std::size_t bytes) {
  return 768 + 2 * name.size() + bytes;
}

// What a member's place costs while the group is there.
std::size_t place_bytes(const std::string& name) {
  return 768 + 2 * name.size();
}

}  // namespace

void StoreMeetings::meet(SessionId from, const std::string& member, StoreRequest request,
                         Clock::time_point now, StoreAnswers& answers) {
  const std::string name = request.keys.front();
  if (auto why = unfit(request)) {
    answers.push_back({from, invalid(request, std::move(*why))});
    return;
  }
  if (bytes_ + request.value.size() > quota_.bytes || parts_ >= kPartsPerGroup * quota_.keys ||
      (groups_.size() >= quota_.keys && !groups_.contains(name))) {
    answers.push_back({from, refuse(request.id, Code::kOutOfMemory,
                                    "the store keeps as many groups and parts as it can")});
    return;
  }
  const std::size_t cost = part_bytes(name, request.value.size());
  if (auto why = charges_.over(from, cost + place_bytes(name))) {
    answers.push_back({from, refuse(request.id, Code::kOutOfMemory, std::move(*why))});
    return;
  }
  auto [found, is_new] = groups_.try_emplace(name);
  Group& group = found->second;
  if (is_new) group.size = request.size;
  if (auto refusal = enter(group, from, member, request)) {
    answers.push_back({from, std::move(*refusal)});
    return;
  }
  const auto number = static_cast<std::uint64_t>(request.delta);
  Operation& operation = group.operations[number];
  wait(name, number, operation, from, request, now);
  bytes_ += request.value.size();
  ++parts_;
  charges_.add(from, cost);
  operation.parts[request.rank] = {.session = from, .bytes = std::move(request.value)};
  complete(name, group, number, answers);
}

std::optional<std::string> StoreMeetings::unfit(const StoreRequest& request) const {
  if (request.size == 0 || request.size > kMostMembers)
    return fmt::format("a group has 1 to {} members, not {}", kMostMembers, request.size);
  if (request.rank < 0 || static_cast<std::uint32_t>(request.rank) >= request.size)
    return fmt::format("the rank is {}, allowed are 0 to {}", request.rank, request.size - 1);
  if (request.delta < 0) return fmt::format("the operation's number is {}", request.delta);
  return std::nullopt;
}

void StoreMeetings::wait(const std::string& name, std::uint64_t number, Operation& operation,
                         SessionId from, const StoreRequest& request, Clock::time_point now) {
  Waiting waiting{.session = from, .request = request.id, .deadline = std::nullopt};
  if (request.timeout_ms != kNoTimeout) {
    waiting.deadline = now + std::chrono::milliseconds(request.timeout_ms);
    alarms_.insert({*waiting.deadline, name, number, request.rank});
  }
  operation.waiting[request.rank] = waiting;
}

// The member's place, made at its first operation.
std::optional<StoreAnswer> StoreMeetings::enter(Group& group, SessionId from,
                                                const std::string& name,
                                                const StoreRequest& request) {
  if (request.size != group.size)
    return invalid(request, fmt::format("this member says that the group has {} members, others "
                                        "said {}",
                                        request.size, group.size));
  const auto number = static_cast<std::uint64_t>(request.delta);
  auto [found, is_new] = group.members.try_emplace(request.rank);
  Member& member = found->second;
  if (is_new) {
    member = {.session = from, .name = name, .next = number, .gone_because = {}};
    places_[from].insert({request.keys.front(), request.rank});
    charges_.add(from, place_bytes(request.keys.front()));
  }
  if (!member.gone_because.empty())
    return refuse(request.id, Code::kPeerLost,
                  fmt::format("rank {} is gone: {}; who takes its place meets in another group",
                              request.rank, member.gone_because));
  if (member.session != from)
    return refuse(request.id, Code::kUnavailable,
                  fmt::format("rank {} is taken by {}", request.rank, member.name));
  if (number < member.next)
    return invalid(request,
                   fmt::format("operation {} was before; the next is {}", number, member.next));
  member.next = number + 1;
  return std::nullopt;
}

// Answers everybody when all have come, or when somebody who has not will not come any more.
void StoreMeetings::complete(const std::string& name, Group& group, std::uint64_t number,
                             StoreAnswers& answers) {
  Operation& operation = group.operations.at(number);
  if (operation.parts.size() < group.size) {
    if (give_up(name, group, number, operation, answers)) {
      forget(name, operation);
      group.operations.erase(number);
    }
    return;
  }
  std::vector<std::string_view> parts;
  for (const auto& [rank, part] : operation.parts) parts.emplace_back(part.bytes);
  answer_all(name, number, operation, all_parts(parts, group.size), answers);
  forget(name, operation);
  group.operations.erase(number);
}

// True when somebody who has not come will not come any more; all who wait have been told then.
// What they brought is of no use, and the next who comes finds out in the same way.
bool StoreMeetings::give_up(const std::string& name, const Group& group, std::uint64_t number,
                            Operation& operation, StoreAnswers& answers) {
  for (const auto& [rank, member] : group.members) {
    if (member.gone_because.empty() || operation.parts.contains(rank)) continue;
    const std::string why =
        fmt::format("rank {} ({}) is gone: {}", rank, member.name, member.gone_because);
    answer_all(name, number, operation, refuse(0, Code::kPeerLost, why), answers);
    return true;
  }
  return false;
}

void StoreMeetings::forget(const std::string& name, Operation& operation) {
  for (const auto& [rank, part] : operation.parts) {
    bytes_ -= part.bytes.size();
    charges_.remove(part.session, part_bytes(name, part.bytes.size()));
  }
  parts_ -= operation.parts.size();
}

void StoreMeetings::forget(const std::string& name, Group& group) {
  for (auto& [number, operation] : group.operations) forget(name, operation);
  for (const auto& [rank, member] : group.members)
    charges_.remove(member.session, place_bytes(name));
}

void StoreMeetings::answer_all(const std::string& name, std::uint64_t number, Operation& operation,
                               const StoreAnswer& answer, StoreAnswers& answers) {
  for (const auto& [rank, waiting] : operation.waiting) {
    StoreAnswer own = answer;
    own.id = waiting.request;
    answers.push_back({waiting.session, std::move(own)});
    if (waiting.deadline) alarms_.erase({*waiting.deadline, name, number, rank});
  }
  operation.waiting.clear();
}

void StoreMeetings::found(const std::string& name,
                          const std::vector<std::pair<SessionId, std::string>>& members) {
  Group& group = groups_[name];
  group.size = static_cast<std::uint32_t>(members.size());
  for (int rank = 0; const auto& [session, member] : members) {
    group.members[rank] = {.session = session, .name = member, .next = 0, .gone_because = {}};
    places_[session].insert({name, rank++});
    charges_.add(session, place_bytes(name));
  }
}

StoreAnswer StoreMeetings::leave(SessionId from, const StoreRequest& request,
                                 StoreAnswers& answers) {
  const std::string& name = request.keys.front();
  const auto places = places_.find(from);
  std::vector<int> ranks;
  if (places != places_.end())
    for (const auto& [group, rank] : places->second)
      if (group == name) ranks.push_back(rank);
  if (ranks.empty()) return refuse(request.id, Code::kNotFound, "this member is not in the group");
  for (int rank : ranks) end_waits(name, rank, "it left", answers);
  for (int rank : ranks) {
    places->second.erase({name, rank});
    remove_member(name, rank, "it left", answers);
  }
  if (places->second.empty()) places_.erase(places);
  return {.id = request.id};
}

void StoreMeetings::disconnect(SessionId session, const std::string& why, StoreAnswers& answers) {
  auto places = places_.extract(session);
  if (places.empty()) return;
  StoreAnswers unread;  // nobody is there to read them
  for (const auto& [group, rank] : places.mapped()) end_waits(group, rank, why, unread);
  for (const auto& [group, rank] : places.mapped()) remove_member(group, rank, why, answers);
}

// Answers what the member itself waits for.
void StoreMeetings::end_waits(const std::string& name, int rank, const std::string& why,
                              StoreAnswers& answers) {
  auto found = groups_.find(name);
  if (found == groups_.end()) return;
  for (auto& [number, operation] : found->second.operations) {
    auto own = operation.waiting.find(rank);
    if (own == operation.waiting.end()) continue;
    const Waiting& waiting = own->second;
    answers.push_back(
        {waiting.session, refuse(waiting.request, Code::kPeerLost,
                                 fmt::format("this member, rank {}, is gone: {}", rank, why))});
    if (waiting.deadline) alarms_.erase({*waiting.deadline, name, number, rank});
    operation.waiting.erase(own);
  }
}

void StoreMeetings::remove_member(const std::string& name, int rank, const std::string& why,
                                  StoreAnswers& answers) {
  auto found = groups_.find(name);
  if (found == groups_.end()) return;
  Group& group = found->second;
  group.members.at(rank).gone_because = why;
  for (auto at = group.operations.begin(); at != group.operations.end();) {
    auto& [number, operation] = *at;
    const bool is_over = give_up(name, group, number, operation, answers);
    if (is_over) forget(name, operation);
    at = is_over ? group.operations.erase(at) : std::next(at);
  }
  for (const auto& [other, member] : group.members)
    if (member.gone_because.empty()) return;
  forget(name, group);
  groups_.erase(found);
}

void StoreMeetings::expire(Clock::time_point now, StoreAnswers& answers) {
  while (!alarms_.empty() && alarms_.begin()->when <= now) {
    const Alarm alarm = *alarms_.begin();
    alarms_.erase(alarms_.begin());
    Group& group = groups_.at(alarm.group);
    Operation& operation = group.operations.at(alarm.operation);
    const Waiting waiting = operation.waiting.at(alarm.rank);
    operation.waiting.erase(alarm.rank);
    answers.push_back({waiting.session, refuse(waiting.request, Code::kTimeout,
                                               missing_ranks(group.size, operation.parts))});
  }
}

std::optional<Clock::time_point> StoreMeetings::next_deadline() const {
  if (alarms_.empty()) return std::nullopt;
  return alarms_.begin()->when;
}

}  // namespace memspan
