// SPDX-License-Identifier: Apache-2.0
// Ranks by arrival. Within a scope, every session takes the lowest free number or the one it asks
// for, until it returns it or ends. The first session that knows the size sets it.
#pragma once

#include <set>

#include "store/charges.h"
#include "store/recipes/rank_recipe.h"

namespace memspan {

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
  StoreAnswer take(SessionId from, const std::string& member, const StoreRequest& request);
  // Frees the session's ranks in the scope; kNotFound if it has none.
  StoreAnswer give(SessionId from, const StoreRequest& request);
  void disconnect(SessionId session);

 private:
  struct Scope {
    std::uint32_t size = 0;
    RankHolders taken;
  };
  StoreAnswer try_to_take(SessionId from, const std::string& member, const StoreRequest& request);
  void free_rank(SessionId session, const std::string& name, int rank);

  StoreCharges& charges_;
  const std::map<std::string, std::uint32_t> sizes_;
  std::map<std::string, Scope> scopes_;
  std::map<SessionId, std::set<std::pair<std::string, int>>> held_;
  std::uint64_t generation_ = 0;
};

}  // namespace memspan
