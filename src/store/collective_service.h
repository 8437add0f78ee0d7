// SPDX-License-Identifier: Apache-2.0
// Recipes that a store may answer itself in one round trip. Each is documented with the recipe of
// the same name (store/recipes/), which uses this if the store supports it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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

// A collective has at most this many members.
inline constexpr std::uint32_t kMostMembers = 65536;
// kInvalidArgument names the allowed values.
Status check_place(std::int64_t rank, std::int64_t size);
// Checks all members' contributions together; `bytes` includes four more for each.
Status check_contributions(std::size_t bytes, std::uint32_t size);

// Ends of messages (core/remedy.h).
extern const char kRankTaken[];
extern const char kRanksMissing[];

// "2 of 5 members did not come: rank 1, 4". Names only the first few: a group may be large, and
// each member that gives up asks. The keys of `came` are the ranks that came.
template <typename Part>
std::string missing_ranks(std::uint32_t size, const std::map<int, Part>& came) {
  constexpr std::size_t kNamed = 16;
  const std::size_t missing = size - came.size();
  std::string text =
      std::to_string(missing) + " of " + std::to_string(size) + " members did not come: rank ";
  std::size_t named = 0;
  for (int rank = 0; named < kNamed && named < missing; ++rank)
    if (!came.contains(rank)) text += (named++ == 0 ? "" : ", ") + std::to_string(rank);
  if (missing > named) text += " and " + std::to_string(missing - named) + " more";
  return text + kRanksMissing;
}

// A group that its members have just made. A value.
struct CreatedGroup {
  std::string name;                        // unique in the store
  std::vector<std::string> contributions;  // by rank
};

// Thread-safe.
class CollectiveService {
 public:
  virtual Result<StoreRank> take_rank(std::string_view scope, int rank, int size,
                                      Deadline deadline) = 0;
  virtual Status give_rank(std::string_view scope, Deadline deadline) = 0;
  virtual Result<std::vector<std::string>> allgather(std::string_view name, int rank, int size,
                                                     std::string_view mine, Deadline deadline) = 0;
  virtual Result<CreatedGroup> create_group(std::string_view name, int rank, int size,
                                            std::string_view mine, Deadline deadline) = 0;
  // Runs operation number `operation` of the group. Each member counts its own, including failed
  // ones.
  virtual Result<std::vector<std::string>> group_allgather(std::string_view group,
                                                           std::uint64_t operation, int rank,
                                                           int size, std::string_view mine,
                                                           Deadline deadline) = 0;
  virtual Status leave_group(std::string_view group, Deadline deadline) = 0;

 protected:
  ~CollectiveService() = default;
};

}  // namespace memspan
