// SPDX-License-Identifier: Apache-2.0
// Recipe: ranks by arrival. Within a scope, every member has one number: the lowest free one, or
// the one it asks for. It keeps the number until it returns that or its lease ends.
//
//   SCOPE/rank/00000 = size, nonce, lease, member      under the lease
//   SCOPE/rank/00003 = ...
#pragma once

#include <map>

#include "store/key_value_store.h"

namespace memspan::inline store {

// The end of messages about a rank that another member has (core/status.h).
extern const char kRankTaken[];
// kUnavailable.
Status rank_is_taken(int rank, std::string_view holder);

inline constexpr std::uint32_t kMostRanks = 65536;
using RankHolders = std::map<int, std::string>;  // the taken ranks, and their members' names

// The rules of both forms of the recipe. kInvalidArgument: more than kMostRanks.
Status check_most_ranks(int rank, std::int64_t size);
// Returns the scope's size: what the other members `said`, or else `mine`; 0 is unknown.
// kInvalidArgument names both values if they differ, or a rank that is beyond the size.
Result<std::uint32_t> agree_on_size(const RankHolders& holders, std::uint32_t said,
                                    std::uint32_t mine);
// Returns `asked`, or the lowest free rank for -1. kUnavailable names the holder of the rank, or
// reports that all are taken; kInvalidArgument: beyond the size.
Result<int> choose_rank(const RankHolders& holders, int asked, std::uint32_t size);

// The recipe, answered by the store itself. Thread-safe.
//
// The built-in server has it beside the recipe by the plain verbs, because only the server can hold
// a member to the rank that its certificate names, and because members that take the lowest free
// rank at the same moment compete: 256 of them take 0.05 s, and 0.3 s by the verbs (Xeon, 2 cores).
class RankService {
 public:
  virtual Result<int> take_rank(std::string_view scope, int rank, int size, Deadline deadline) = 0;
  virtual Status give_rank(std::string_view scope, Deadline deadline) = 0;

 protected:
  ~RankService() = default;
};

// `rank` -1: the lowest free one. `size` 0: unknown; the first member that knows the size sets it
// for as long as a rank is taken. kInvalidArgument names both values if the sizes differ or the
// rank is beyond the size. kUnavailable names the holder of the rank, or reports that all are
// taken.
Result<int> take_rank(KeyValueStore& store, std::string_view scope, int rank, int size,
                      Deadline deadline);
// take_rank() for a process that may replace one that has just died, which only the built-in server
// notices at once. On another store it waits as long as a lease may hold, if no rank is free or the
// one asked for is taken.
Result<int> take_freed_rank(KeyValueStore& store, std::string_view scope, int rank, int size,
                            Deadline deadline);
// kNotFound when this member has none in the scope.
Status give_rank(KeyValueStore& store, std::string_view scope, Deadline deadline);

}  // namespace memspan::inline store
