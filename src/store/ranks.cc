// SPDX-License-Identifier: Apache-2.0
#include "store/ranks.h"

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
  const auto scope = scopes_.find(request.key);
  if (scope != scopes_.end() && scope->second.taken.empty()) scopes_.erase(scope);
  return answer;
}

StoreAnswer StoreRanks::try_to_take(SessionId from, const std::string& member,
                                    const StoreRequest& request) {
  const std::string& name = request.key;
  if (Status status = check_most_ranks(request.rank, request.size); !status.is_ok())
    return refuse(request.id, status);
  if (auto why = charges_.over(from, rank_bytes(name)))
    return refuse(request.id, Code::kOutOfMemory, std::move(*why));
  Scope& scope = scopes_[name];
  if (const auto known = sizes_.find(name); known != sizes_.end()) scope.size = known->second;
  const auto size = agree_on_size(scope.taken, scope.size, request.size);
  if (!size.is_ok()) return refuse(request.id, size.status());
  const auto rank = choose_rank(scope.taken, request.rank, *size);
  if (!rank.is_ok()) return refuse(request.id, rank.status());
  scope.size = *size;
  scope.taken[*rank] = member;
  held_[from].insert({name, *rank});
  charges_.add(from, rank_bytes(name));
  const StoreRank taken{.rank = *rank, .size = *size, .generation = ++generation_};
  return {.id = request.id, .value = encode_record(taken), .number = *rank};
}

StoreAnswer StoreRanks::give(SessionId from, const StoreRequest& request) {
  const std::string& name = request.key;
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

}  // namespace memspan
