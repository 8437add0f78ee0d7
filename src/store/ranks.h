// SPDX-License-Identifier: Apache-2.0
// Ranks by arrival. Within a scope, every session takes the lowest free number or the one it asks
// for, until it returns it or ends. The first session that knows the size sets it.
#pragma once

#include <set>

#include "store/charges.h"
#include "store/recipes/rank_recipe.h"

namespace memspan::inline store {

// One thread at a time.
class StoreRanks {
 public:
  // False for MemFabric's scopes, which all members of the store share. All other scopes have the
  // name of their job.
  static bool is_jobs_name(std::string_view scope) { return scope != "bm" && scope != "shm"; }

  // `sizes`, by scope, are fixed: a request with another size is refused. `charges` must outlive
  // it.
  explicit StoreRanks(StoreCharges& charges, std::map<std::string, std::uint32_t> sizes = {})
      : charges_(charges), sizes_(std::move(sizes)) {}

  // Fails as agree_on_size() and choose_rank(). The size becomes the scope's only on success.
  Result<StoreAnswer> take(SessionId from, const std::string& member, const StoreRequest& request) {
    const std::string& name = request.key;
    MEMSPAN_PASS(check_most_ranks(request.rank, request.size));
    MEMSPAN_PASS(charges_.check(from, rank_bytes(name)));
    const Scope none;
    const auto known = scopes_.find(name);
    const Scope& now = known == scopes_.end() ? none : known->second;
    const auto fixed = sizes_.find(name);
    const std::uint32_t said = fixed == sizes_.end() ? now.size : fixed->second;
    MEMSPAN_PASS_ASSIGN(const std::uint32_t size, agree_on_size(now.taken, said, request.size));
    MEMSPAN_PASS_ASSIGN(const int rank, choose_rank(now.taken, request.rank, size));
    Scope& scope = scopes_[name];
    scope.size = size;
    scope.taken[rank] = member;
    held_[from].insert({name, rank});
    charges_.add(from, rank_bytes(name));
    return StoreAnswer{.id = request.id, .number = rank};
  }

  // Frees the session's ranks in the scope; kNotFound if it has none.
  Result<StoreAnswer> give(SessionId from, const StoreRequest& request) {
    const std::string& name = request.key;
    const auto held = held_.find(from);
    const auto freed = held == held_.end() ? 0 : std::erase_if(held->second, [&](const auto& each) {
      if (each.first == name) free_rank(from, name, each.second);
      return each.first == name;
    });
    if (freed == 0) return Status(Code::kNotFound, "this member has no rank there");
    if (held->second.empty()) held_.erase(held);
    return StoreAnswer{.id = request.id};
  }

  void disconnect(SessionId session) {
    auto held = held_.extract(session);
    if (held.empty()) return;
    for (const auto& [name, rank] : held.mapped()) free_rank(session, name, rank);
  }

 private:
  // Bytes charged for a taken rank.
  static std::size_t rank_bytes(const std::string& scope) { return 768 + 2 * scope.size(); }
  struct Scope {
    std::uint32_t size = 0;
    RankHolders taken;
  };
  void free_rank(SessionId session, const std::string& name, int rank) {
    charges_.remove(session, rank_bytes(name));
    Scope& scope = scopes_.at(name);
    scope.taken.erase(rank);
    // The scope is empty: the next job may have another size.
    if (scope.taken.empty()) scopes_.erase(name);
  }

  StoreCharges& charges_;
  const std::map<std::string, std::uint32_t> sizes_;
  std::map<std::string, Scope> scopes_;
  std::map<SessionId, std::set<std::pair<std::string, int>>> held_;
};

}  // namespace memspan::inline store
