// SPDX-License-Identifier: Apache-2.0
// The recipe of recipes/rank_recipe.h, answered by the store itself.
//
// The built-in server has it beside the recipe by the plain verbs, because only the server can hold
// a member to the rank that its certificate names, and because members that take the lowest free
// rank at the same moment compete: 256 of them take 0.05 s, and 0.3 s by the verbs (Xeon, 2 cores).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/status.h"

namespace memspan {

// A rank that a member has taken. A value.
struct StoreRank {
  int rank = 0;
  std::uint32_t size = 0;        // 0: not known yet
  std::uint64_t generation = 0;  // unique among all ranks that the store ever assigned

  std::string encode() const;
  static Result<StoreRank> decode(std::string_view bytes);
  bool operator==(const StoreRank&) const = default;
};

// The end of messages about a rank that another member has (core/remedy.h).
extern const char kRankTaken[];

// Thread-safe.
class RankService {
 public:
  virtual Result<StoreRank> take_rank(std::string_view scope, int rank, int size,
                                      Deadline deadline) = 0;
  virtual Status give_rank(std::string_view scope, Deadline deadline) = 0;

 protected:
  ~RankService() = default;
};

}  // namespace memspan
