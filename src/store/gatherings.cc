// SPDX-License-Identifier: Apache-2.0
#include "store/gatherings.h"

#include <fmt/format.h>

#include <algorithm>

namespace memspan {
namespace {

// On average over all names that a store keeps; empty parts take room, too.
constexpr std::size_t kPartsPerName = 16;

// What a part costs while its round is there, with all that names the gathering.
std::size_t part_bytes(const std::string& name, std::size_t bytes) {
  return 1024 + 4 * name.size() + bytes;
}

// What it costs to know who met last.
constexpr std::size_t kSeatBytes = 768;

std::string gone(int rank, const std::string& member, const std::string& why) {
  return fmt::format("rank {} ({}) is gone: {}", rank, member, why);
}

}  // namespace

std::optional<StoreGatherings::Assembled> StoreGatherings::come(SessionId from,
                                                                const std::string& member,
                                                                StoreRequest request,
                                                                Clock::time_point now,
                                                                StoreAnswers& answers) {
  const auto refused = [&](StoreAnswer why) {
    answers.push_back({from, std::move(why)});
    return std::nullopt;
  };
  if (auto why = unfit(request)) return refused(std::move(*why));
  if (auto why = charges_.over(from, part_bytes(request.keys.front(), request.value.size())))
    return refused(refuse(request.id, Code::kOutOfMemory, std::move(*why)));
  const auto [found, is_new] = gatherings_.try_emplace({request.operation, request.keys.front()});
  if (is_new && gatherings_.size() > quota_.keys) forget(gatherings_.find(idle_.begin()->second));
  if (auto why = fit_size(found, request, answers)) return refused(std::move(*why));
  Gathering& gathering = found->second;
  const auto number = round_for(found, from, request.rank);
  if (!number.is_ok()) return refused(refuse(request.id, number.code(), number.status().message()));
  if (const auto seat = gathering.last.find(request.rank);
      seat != gathering.last.end() && seat->second.session != from)
    forget_last(found);  // others meet here from now on
  for (const auto& [rank, seat] : gathering.last) {
    if (seat.gone_because.empty() || gathering.rounds[*number].contains(rank)) continue;
    StoreAnswer why =
        refuse(request.id, Code::kPeerLost, gone(rank, seat.member, seat.gone_because));
    end_round(found, *number, why, answers);
    rest(found);
    return refused(std::move(why));
  }
  wake(gathering);
  wait(found, *number, {from, member, {}}, std::move(request), now);
  return complete(found, *number, answers);
}

std::optional<StoreAnswer> StoreGatherings::unfit(const StoreRequest& request) const {
  const auto invalid = [&](std::string why) {
    return refuse(request.id, Code::kInvalidArgument, std::move(why));
  };
  if (request.size == 0 || request.size > kMostMembers)
    return invalid(
        fmt::format("a gathering has 1 to {} members, not {}", kMostMembers, request.size));
  if (request.rank < 0 || static_cast<std::uint32_t>(request.rank) >= request.size)
    return invalid(
        fmt::format("the rank is {}, allowed are 0 to {}", request.rank, request.size - 1));
  if (bytes_ + request.value.size() > quota_.bytes || parts_ >= kPartsPerName * quota_.keys ||
      (gatherings_.size() - idle_.size() >= quota_.keys &&
       !gatherings_.contains({request.operation, request.keys.front()})))
    return refuse(request.id, Code::kOutOfMemory,
                  "the store keeps as many gatherings and parts as it can");
  return std::nullopt;
}

// Makes the size the gathering's, or says why not.
std::optional<StoreAnswer> StoreGatherings::fit_size(Found found, const StoreRequest& request,
                                                     StoreAnswers& answers) {
  Gathering& gathering = found->second;
  if (gathering.size == request.size) return std::nullopt;
  if (!is_awaited(gathering)) {
    while (!gathering.rounds.empty())
      end_round(found, gathering.rounds.begin()->first, {}, answers);
    forget_last(found);
    gathering.size = request.size;
    return std::nullopt;
  }
  StoreAnswer why = refuse(request.id, Code::kInvalidArgument,
                           fmt::format("rank {} says that there are {} members, others said {}",
                                       request.rank, request.size, gathering.size));
  if (found->first.first == StoreOperation::kAssemble) {
    end_round(found, gathering.rounds.begin()->first, why, answers);
    forget(found);
  }
  return why;
}

Result<std::uint64_t> StoreGatherings::round_for(Found found, SessionId from, int rank) {
  const bool is_assembly = found->first.first == StoreOperation::kAssemble;
  for (auto& [number, round] : found->second.rounds) {
    const auto part = round.find(rank);
    if (part == round.end()) return number;
    const Seat& seat = part->second.seat;
    if (seat.session == from && !is_assembly) continue;
    if (part->second.waiting)
      return Status(Code::kUnavailable, fmt::format("rank {} is taken by {}", rank, seat.member));
    // Of a member that gave up or is gone: others meet here now.
    drop_part(found, number, rank);
    return number;
  }
  found->second.rounds[++serial_];
  return serial_;
}

void StoreGatherings::wait(Found found, std::uint64_t number, Seat seat, StoreRequest request,
                           Clock::time_point now) {
  Part part{.seat = std::move(seat),
            .bytes = std::move(request.value),
            .waiting = request.id,
            .deadline = std::nullopt};
  if (request.timeout_ms != kNoTimeout) {
    part.deadline = now + std::chrono::milliseconds(request.timeout_ms);
    alarms_.insert({*part.deadline, found->first, number, request.rank});
  }
  bytes_ += part.bytes.size();
  ++parts_;
  charges_.add(part.seat.session, part_bytes(found->first.second, part.bytes.size()));
  places_[part.seat.session].insert(found->first);
  found->second.rounds.at(number).insert_or_assign(request.rank, std::move(part));
}

// Answers everybody when all have come.
std::optional<StoreGatherings::Assembled> StoreGatherings::complete(Found found,
                                                                    std::uint64_t number,
                                                                    StoreAnswers& answers) {
  Gathering& gathering = found->second;
  const Round& round = gathering.rounds.at(number);
  if (round.size() < gathering.size) return std::nullopt;
  const bool is_assembly = found->first.first == StoreOperation::kAssemble;
  Assembled assembled{.group = fmt::format("{}#{}", found->first.second, number), .members = {}};
  std::vector<std::string_view> parts;
  forget_last(found);
  for (const auto& [rank, part] : round) {
    parts.emplace_back(part.bytes);
    assembled.members.emplace_back(part.seat.session, part.seat.member);
    remember(found, rank, part.seat);
  }
  if (is_assembly) parts.emplace_back(assembled.group);
  const StoreAnswer answer = all_parts(parts, gathering.size);
  end_round(found, number, answer, answers);
  if (!is_assembly) {
    rest(found);
    return std::nullopt;
  }
  forget(found);
  if (answer.code != Code::kOk) return std::nullopt;
  return assembled;
}

StoreAnswer StoreGatherings::leave(SessionId from, const StoreRequest& request,
                                   StoreAnswers& answers) {
  bool was_there = false;
  for (StoreOperation kind : {StoreOperation::kGather, StoreOperation::kAssemble}) {
    const auto found = gatherings_.find({kind, request.keys.front()});
    auto places = places_.find(from);
    if (found == gatherings_.end() || places == places_.end() ||
        places->second.erase(found->first) == 0)
      continue;
    if (places->second.empty()) places_.erase(places);
    was_there = true;
    end_member(found, from, "it left", answers);
  }
  if (was_there) return {.id = request.id};
  return refuse(request.id, Code::kNotFound, "this member is not in the group");
}

void StoreGatherings::disconnect(SessionId session, const std::string& why, StoreAnswers& answers) {
  const auto places = places_.extract(session);
  if (places.empty()) return;
  StoreAnswers all;
  for (const Name& name : places.mapped())
    if (const auto found = gatherings_.find(name); found != gatherings_.end())
      end_member(found, session, why, all);
  for (StoreOutgoing& out : all)
    if (out.to != session) answers.push_back(std::move(out));  // else nobody is there to read it
}

// What the member came to stays, but in an assembly, which it ends.
void StoreGatherings::end_member(Found found, SessionId session, const std::string& why,
                                 StoreAnswers& answers) {
  const bool is_assembly = found->first.first == StoreOperation::kAssemble;
  for (auto& [number, round] : found->second.rounds)
    for (auto& [rank, part] : round) {
      if (part.seat.session != session) continue;
      part.seat.gone_because = why;
      if (part.waiting)
        answers.push_back(
            {session, refuse(*part.waiting, Code::kPeerLost,
                             fmt::format("this member, rank {}, is gone: {}", rank, why))});
      part.waiting.reset();
      if (part.deadline) alarms_.erase({*part.deadline, found->first, number, rank});
      part.deadline.reset();
      if (!is_assembly) continue;
      const StoreAnswer ended = refuse(0, Code::kPeerLost, gone(rank, part.seat.member, why));
      end_round(found, number, ended, answers);
      forget(found);
      return;
    }
  for (auto& [rank, seat] : found->second.last) {
    if (seat.session != session) continue;
    seat.gone_because = why;
    lose(found, rank, why, answers);
  }
  if (has_anybody(found->second))
    rest(found);
  else
    forget(found);
}

// Ends the rounds that a member of the last one will not come to any more.
void StoreGatherings::lose(Found found, int rank, const std::string& why, StoreAnswers& answers) {
  std::vector<std::uint64_t> lost;
  for (const auto& [number, round] : found->second.rounds)
    if (!round.contains(rank)) lost.push_back(number);
  const StoreAnswer answer =
      refuse(0, Code::kPeerLost, gone(rank, found->second.last.at(rank).member, why));
  for (std::uint64_t number : lost) end_round(found, number, answer, answers);
}

void StoreGatherings::end_round(Found found, std::uint64_t number, const StoreAnswer& answer,
                                StoreAnswers& answers) {
  const Round& round = found->second.rounds.at(number);
  for (const auto& [rank, part] : round) {
    if (!part.waiting) continue;
    StoreAnswer own = answer;
    own.id = *part.waiting;
    answers.push_back({part.seat.session, std::move(own)});
  }
  while (!round.empty()) drop_part(found, number, round.begin()->first);
  found->second.rounds.erase(number);
}

void StoreGatherings::drop_part(Found found, std::uint64_t number, int rank) {
  Round& round = found->second.rounds.at(number);
  const Part& part = round.at(rank);
  if (part.deadline) alarms_.erase({*part.deadline, found->first, number, rank});
  bytes_ -= part.bytes.size();
  --parts_;
  charges_.remove(part.seat.session, part_bytes(found->first.second, part.bytes.size()));
  round.erase(rank);
}

// Only as far as it may: a death that is not noticed here ends by a time-out.
void StoreGatherings::remember(Found found, int rank, const Seat& seat) {
  if (charges_.over(seat.session, kSeatBytes)) return;
  charges_.add(seat.session, kSeatBytes);
  found->second.last[rank] = seat;
}

void StoreGatherings::forget_last(Found found) {
  for (const auto& [rank, seat] : found->second.last) charges_.remove(seat.session, kSeatBytes);
  found->second.last.clear();
}

// A name without rounds is kept for a while.
void StoreGatherings::rest(Found found) {
  Gathering& gathering = found->second;
  if (!gathering.rounds.empty() || gathering.idle != 0) return;
  gathering.idle = ++serial_;
  idle_.emplace(gathering.idle, found->first);
  if (idle_.size() > kMostIdle) forget(gatherings_.find(idle_.begin()->second));
}

void StoreGatherings::wake(Gathering& gathering) {
  idle_.erase(gathering.idle);
  gathering.idle = 0;
}

void StoreGatherings::forget(Found found) {
  wake(found->second);
  std::set<SessionId> sessions;
  for (auto& [rank, seat] : found->second.last) sessions.insert(seat.session);
  while (!found->second.rounds.empty()) {
    auto& [number, round] = *found->second.rounds.begin();
    for (auto& [rank, part] : round) sessions.insert(part.seat.session);
    StoreAnswers unread;
    end_round(found, number, {}, unread);
  }
  forget_last(found);
  for (SessionId session : sessions)
    if (auto places = places_.find(session); places != places_.end()) {
      places->second.erase(found->first);
      if (places->second.empty()) places_.erase(places);
    }
  gatherings_.erase(found);
}

bool StoreGatherings::is_awaited(const Gathering& gathering) {
  return std::any_of(gathering.rounds.begin(), gathering.rounds.end(), [](const auto& numbered) {
    const Round& round = numbered.second;
    return std::any_of(round.begin(), round.end(),
                       [](const auto& part) { return part.second.waiting.has_value(); });
  });
}

bool StoreGatherings::has_anybody(const Gathering& gathering) {
  const auto is_there = [](const Seat& seat) { return seat.gone_because.empty(); };
  for (const auto& [rank, seat] : gathering.last)
    if (is_there(seat)) return true;
  for (const auto& [number, round] : gathering.rounds)
    for (const auto& [rank, part] : round)
      if (is_there(part.seat)) return true;
  return false;
}

void StoreGatherings::expire(Clock::time_point now, StoreAnswers& answers) {
  std::vector<Alarm> gave_up;  // of assemblies
  while (!alarms_.empty() && alarms_.begin()->when <= now) {
    const Alarm alarm = *alarms_.begin();
    alarms_.erase(alarms_.begin());
    Gathering& gathering = gatherings_.at(alarm.name);
    const Round& round = gathering.rounds.at(alarm.round);
    Part& part = gathering.rounds.at(alarm.round).at(alarm.rank);
    answers.push_back({part.seat.session, refuse(*part.waiting, Code::kTimeout,
                                                 missing_ranks(gathering.size, round))});
    part.waiting.reset();
    part.deadline.reset();
    if (alarm.name.first == StoreOperation::kAssemble) gave_up.push_back(alarm);
  }
  // After all were told: who gave up at the same time did come.
  for (const Alarm& alarm : gave_up) {
    const auto found = gatherings_.find(alarm.name);
    drop_part(found, alarm.round, alarm.rank);
    if (found->second.rounds.at(alarm.round).empty()) forget(found);
  }
}

std::optional<Clock::time_point> StoreGatherings::next_deadline() const {
  if (alarms_.empty()) return std::nullopt;
  return alarms_.begin()->when;
}

}  // namespace memspan
