// SPDX-License-Identifier: Apache-2.0
#include "store/ranks.h"

#include <fmt/format.h>

#include <vector>

namespace memspan {
namespace {

// Bytes charged for a taken rank.
std::size_t rank_bytes(const std::string& scope) {
  return 768 + 2 * scope.size();
}

}  // namespace

StoreAnswer StoreRanks::take(SessionId from, const std::string& member,
                             const StoreRequest& request) {
  StoreAnswer answer = try_to_take(from, member, request);
  const auto scope = scopes_.find(request.keys.front());
  if (scope != scopes_.end() && scope->second.taken.empty()) scopes_.erase(scope);
  return answer;
}

StoreAnswer StoreRanks::try_to_take(SessionId from, const std::string& member,
                                    const StoreRequest& request) {
  const std::string& name = request.keys.front();
  const auto invalid = [&](std::string why) {
    return refuse(request.id, Code::kInvalidArgument, std::move(why));
  };
  if (request.size > kMostRanks || request.rank < -1 ||
      request.rank >= static_cast<std::int32_t>(kMostRanks))
    return invalid(fmt::format("rank {} of {}: at most {} are allowed", request.rank, request.size,
                               kMostRanks));
  if (auto why = charges_.over(from, rank_bytes(name)))
    return refuse(request.id, Code::kOutOfMemory, std::move(*why));
  Scope& scope = scopes_[name];
  if (const auto known = sizes_.find(name); known != sizes_.end()) scope.size = known->second;
  // Becomes the scope's size only if this request succeeds.
  const std::uint32_t said = scope.size != 0 ? scope.size : request.size;
  if (request.size != 0 && request.size != said)
    return invalid(fmt::format("this member says that there are {} ranks, others said {}",
                               request.size, said));
  if (const auto last = scope.taken.rbegin();
      said != 0 && last != scope.taken.rend() && static_cast<std::uint32_t>(last->first) >= said)
    return invalid(
        fmt::format("this member says that there are {} ranks, but rank {} is taken by "
                    "{}",
                    said, last->first, last->second.second));
  const int rank = request.rank >= 0 ? request.rank : lowest_free(scope);
  if (auto other = scope.taken.find(rank); other != scope.taken.end())
    return refuse(request.id, Code::kUnavailable,
                  fmt::format("rank {} is taken by {}{}", rank, other->second.second, kRankTaken));
  const std::uint32_t size = said == 0 ? kMostRanks : said;
  if (static_cast<std::uint32_t>(rank) >= size)
    return request.rank >= 0
               ? invalid(fmt::format("the rank is {}, allowed are 0 to {}", rank, size - 1))
               : refuse(request.id, Code::kUnavailable,
                        fmt::format("all {} ranks are taken", size));
  scope.size = said;
  scope.taken[rank] = {from, member};
  held_[from].insert({name, rank});
  charges_.add(from, rank_bytes(name));
  const StoreRank taken{.rank = rank, .size = scope.size, .generation = ++generation_};
  return {.id = request.id, .value = taken.encode(), .number = rank};
}

StoreAnswer StoreRanks::give(SessionId from, const StoreRequest& request) {
  const std::string& name = request.keys.front();
  std::vector<int> ranks;
  const auto held = held_.find(from);
  if (held != held_.end())
    for (const auto& [scope, rank] : held->second)
      if (scope == name) ranks.push_back(rank);
  if (ranks.empty()) return refuse(request.id, Code::kNotFound, "this member has no rank there");
  for (int rank : ranks) {
    held->second.erase({name, rank});
    free_rank(from, name, rank);
  }
  if (held->second.empty()) held_.erase(held);
  return {.id = request.id};
}

void StoreRanks::disconnect(SessionId session) {
  auto held = held_.extract(session);
  if (held.empty()) return;
  for (const auto& [name, rank] : held.mapped()) free_rank(session, name, rank);
}

void StoreRanks::free_rank(SessionId session, const std::string& name, int rank) {
  charges_.remove(session, rank_bytes(name));
  Scope& scope = scopes_.at(name);
  scope.taken.erase(rank);
  // The scope is empty: the next job may have another size.
  if (scope.taken.empty()) scopes_.erase(name);
}

int StoreRanks::lowest_free(const Scope& scope) {
  int rank = 0;
  for (const auto& [taken, by] : scope.taken) {
    if (taken != rank) break;
    ++rank;
  }
  return rank;
}

}  // namespace memspan
