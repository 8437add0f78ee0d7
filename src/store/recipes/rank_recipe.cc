// SPDX-License-Identifier: Apache-2.0
#include "store/recipes/rank_recipe.h"

#include <fmt/format.h>

#include "store/recipes/change_queue.h"
#include "store/recipes/contributions.h"

namespace memspan::inline store {

MEMSPAN_REMEDY(kRankTaken, "rank-taken",
               "Another process has this rank, perhaps of an earlier job at the same address.",
               "Give each process its own rank; end the earlier job, or set another MEMSPAN_JOB.");

namespace {

// The rest of a departed member's lease: 3 s, and etcd's time to check and to elect a leader.
constexpr Duration kLongestLease = std::chrono::seconds(6);

// The content of a rank's key. A value.
struct Taken {
  static constexpr std::string_view kWhat = "rank";
  std::uint32_t size = 0;  // 0: the member does not know it
  std::uint64_t nonce = 0;
  std::uint64_t lease = 0;
  std::string member = {};

  static void fields(auto& codec, auto& self) {
    codec(self.size, self.nonce, self.lease, self.member);
  }
};

// The content of a scope's keys. A value.
struct Scope {
  RankHolders holders = {};
  std::uint32_t size = 0;     // said by the members; 0: unknown
  std::vector<int> own = {};  // the ranks of this member
};

std::string prefix_of(std::string_view scope) {
  return fmt::format("{}/rank/", scope);
}

// `mine` is the size that this member says. The scope has another one if any member says that.
Result<Scope> read_scope(KeyValueStore& store, std::string_view scope, std::uint32_t mine,
                         const Deadline& deadline) {
  MEMSPAN_TRY_ASSIGN(auto ranks, list_records<Taken>(store, prefix_of(scope), deadline),
                     "listing the ranks");
  Scope seen{.size = mine};
  for (auto& [rank, taken] : ranks) {
    if (taken.size != 0 && seen.size == mine) seen.size = taken.size;
    if (taken.lease == store.lease()) seen.own.push_back(rank);
    seen.holders[rank] = std::move(taken.member);
  }
  return seen;
}

Result<int> take_by_verbs(KeyValueStore& store, std::string_view scope, int asked,
                          std::uint32_t said, const Deadline& deadline) {
  Taken mine{.size = said, .nonce = new_nonce(), .lease = store.lease(), .member = store.member()};
  while (!deadline.has_passed()) {
    MEMSPAN_TRY_ASSIGN(const Scope others, read_scope(store, scope, said, deadline),
                       "taking a rank");
    MEMSPAN_PASS_ASSIGN(mine.size, agree_on_size(others.holders, others.size, said));
    MEMSPAN_PASS_ASSIGN(auto rank, choose_rank(others.holders, asked, mine.size));
    const std::string key = rank_key(prefix_of(scope), rank);
    const std::string wanted = encode_record(mine);
    MEMSPAN_TRY_ASSIGN(const std::string now,
                       store.compare_and_swap(key, "", wanted, deadline, KeyLife::kLease),
                       "taking a rank");
    if (now != wanted) continue;  // another member was faster
    // Members that did not see each other may pass different sizes. Then each that sees it fails.
    MEMSPAN_TRY_ASSIGN(Scope all, read_scope(store, scope, mine.size, deadline), "taking a rank");
    all.holders.erase(rank);
    auto size = agree_on_size(all.holders, all.size, mine.size);
    if (size.is_ok()) return rank;
    static_cast<void>(store.remove(key, deadline));
    return size.status();
  }
  return Status(Code::kTimeout, "the ranks changed all the time");
}

}  // namespace

Status rank_is_taken(int rank, std::string_view holder) {
  return {Code::kUnavailable, fmt::format("rank {} is taken by {}{}", rank, holder, kRankTaken)};
}

Status check_most_ranks(int rank, std::int64_t size) {
  if (size >= 0 && size <= kMostRanks && rank >= -1 && rank < static_cast<int>(kMostRanks))
    return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("rank {} of {}: at most {} are allowed", rank, size, kMostRanks)};
}

Result<std::uint32_t> agree_on_size(const RankHolders& holders, std::uint32_t said,
                                    std::uint32_t mine) {
  if (said != 0 && mine != 0 && said != mine)
    return Status(
        Code::kInvalidArgument,
        fmt::format("this member says that there are {} ranks, others said {}", mine, said));
  const std::uint32_t size = said != 0 ? said : mine;
  if (size != 0 && !holders.empty() && holders.rbegin()->first >= static_cast<int>(size))
    return Status(Code::kInvalidArgument,
                  fmt::format("this member says that there are {} ranks, but rank {} is taken by "
                              "{}",
                              size, holders.rbegin()->first, holders.rbegin()->second));
  return size;
}

Result<int> choose_rank(const RankHolders& holders, int asked, std::uint32_t size) {
  int rank = asked;
  if (asked < 0)
    for (rank = 0; holders.contains(rank);) ++rank;
  if (const auto holder = holders.find(rank); holder != holders.end())
    return rank_is_taken(rank, holder->second);
  const int most = static_cast<int>(size == 0 ? kMostRanks : size);
  if (rank < most) return rank;
  if (asked < 0) return Status(Code::kUnavailable, fmt::format("all {} ranks are taken", most));
  return Status(Code::kInvalidArgument,
                fmt::format("the rank is {}, allowed are 0 to {}", rank, most - 1));
}

Result<int> take_rank(KeyValueStore& store, std::string_view scope, int rank, int size,
                      Deadline deadline) {
  if (RankService* service = store.rank_service())
    return service->take_rank(scope, rank, size, deadline);
  MEMSPAN_PASS(check_most_ranks(rank, size));
  return take_by_verbs(store, scope, rank, static_cast<std::uint32_t>(size), deadline);
}

Result<int> take_freed_rank(KeyValueStore& store, std::string_view scope, int rank, int size,
                            Deadline deadline) {
  if (store.rank_service() != nullptr) return take_rank(store, scope, rank, size, deadline);
  ChangeQueue changes(store);
  MEMSPAN_TRY(changes.watch(prefix_of(scope), deadline), "taking a rank");
  const Deadline freed = deadline.within(kLongestLease);
  for (;;) {
    auto taken = take_rank(store, scope, rank, size, deadline);
    if (taken.code() != Code::kUnavailable || freed.has_passed()) return taken;
    const Status changed = changes.next(freed).status();
    if (changed.code() == Code::kTimeout) return taken;
    if (!changed.is_ok()) return changed;
  }
}

Status give_rank(KeyValueStore& store, std::string_view scope, Deadline deadline) {
  if (RankService* service = store.rank_service()) return service->give_rank(scope, deadline);
  MEMSPAN_TRY_ASSIGN(const Scope seen, read_scope(store, scope, 0, deadline), "giving up a rank");
  for (const int rank : seen.own)
    MEMSPAN_TRY(store.remove(rank_key(prefix_of(scope), rank), deadline).status(),
                "giving up a rank");
  if (!seen.own.empty()) return Status::ok();
  return {Code::kNotFound, fmt::format("this member has no rank in \"{}\"", scope)};
}

}  // namespace memspan::inline store
