// SPDX-License-Identifier: Apache-2.0
#include "store/recipes/rank_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "core/bytes.h"
#include "store/rank_service.h"
#include "store/recipes/change_queue.h"
#include "store/recipes/key_names.h"

namespace memspan {
namespace {

constexpr int kMostRanks = 65536;
// The rest of a departed member's lease: 3 s, and etcd's time to check and to elect a leader.
constexpr Duration kLongestLease = std::chrono::seconds(6);

// The content of a rank's key. A value.
struct Taken {
  std::uint32_t size = 0;  // 0: the member does not know it
  std::uint64_t generation = 0;
  std::uint64_t lease = 0;
  std::string member = {};

  std::string encode() const {
    ByteWriter writer;
    writer.u32(size);
    writer.u64(generation);
    writer.u64(lease);
    writer.text(member);
    return writer.take();
  }
  static Result<Taken> decode(std::string_view bytes) {
    ByteReader reader(bytes);
    Taken taken{.size = reader.u32(), .generation = reader.u64(), .lease = reader.u64()};
    taken.member = reader.text();
    if (!reader.is_finished()) return Status(Code::kInternal, "a malformed rank in the store");
    return taken;
  }
};

using Ranks = std::map<int, Taken>;

std::string prefix_of(std::string_view scope) {
  return fmt::format("{}/rank/", scope);
}

Result<Ranks> ranks_of(KeyValueStore& store, std::string_view scope, const Deadline& deadline) {
  const std::string prefix = prefix_of(scope);
  MEMSPAN_TRY_ASSIGN(const StoreListing listing, store.list(prefix, deadline), "listing the ranks");
  Ranks ranks;
  for (const auto& [key, value] : listing) {
    MEMSPAN_TRY_ASSIGN(const int rank, rank_in_key(key, prefix), "listing the ranks");
    MEMSPAN_TRY_ASSIGN(ranks[rank], Taken::decode(value), "listing the ranks");
  }
  return ranks;
}

Status taken_by(int rank, const Taken& other) {
  return {Code::kUnavailable,
          fmt::format("rank {} is taken by {}{}", rank, other.member, kRankTaken)};
}

// The scope's size, from all others and this member. `mine` 0: unknown.
Result<std::uint32_t> agreed_size(const Ranks& others, std::uint32_t mine) {
  std::uint32_t size = mine;
  for (const auto& [rank, other] : others) {
    if (other.size != 0 && size != 0 && other.size != size)
      return Status(Code::kInvalidArgument,
                    fmt::format("this member says that there are {} ranks, others said {}", mine,
                                other.size));
    if (size == 0) size = other.size;
  }
  if (size != 0 && !others.empty() && static_cast<std::uint32_t>(others.rbegin()->first) >= size)
    return Status(Code::kInvalidArgument,
                  fmt::format("this member says that there are {} ranks, but rank {} is taken by "
                              "{}",
                              size, others.rbegin()->first, others.rbegin()->second.member));
  return size;
}

// The rank asked for, or the lowest free one.
Result<int> choose(const Ranks& others, int asked, std::uint32_t size) {
  int rank = asked;
  if (asked < 0)
    for (rank = 0; others.contains(rank);) ++rank;
  if (const auto other = others.find(rank); other != others.end())
    return taken_by(rank, other->second);
  const int most = size == 0 ? kMostRanks : static_cast<int>(size);
  if (rank < most) return rank;
  if (asked < 0) return Status(Code::kUnavailable, fmt::format("all {} ranks are taken", most));
  return Status(Code::kInvalidArgument,
                fmt::format("the rank is {}, allowed are 0 to {}", rank, most - 1));
}

Result<StoreRank> take_by_verbs(KeyValueStore& store, std::string_view scope, int asked,
                                std::uint32_t said, const Deadline& deadline) {
  Taken mine{
      .size = said, .generation = new_nonce(), .lease = store.lease(), .member = store.member()};
  while (!deadline.has_passed()) {
    MEMSPAN_TRY_ASSIGN(const Ranks others, ranks_of(store, scope, deadline), "taking a rank");
    auto size = agreed_size(others, said);
    if (!size.is_ok()) return size.status();
    auto rank = choose(others, asked, *size);
    if (!rank.is_ok()) return rank.status();
    mine.size = *size;
    const std::string key = rank_key(prefix_of(scope), *rank);
    const std::string wanted = mine.encode();
    MEMSPAN_TRY_ASSIGN(const std::string now,
                       store.compare_and_swap(key, "", wanted, deadline, KeyLife::kLease),
                       "taking a rank");
    if (now != wanted) continue;  // another member was faster
    // Members that did not see each other may pass different sizes. Then each that sees it fails.
    MEMSPAN_TRY_ASSIGN(Ranks all, ranks_of(store, scope, deadline), "taking a rank");
    all.erase(*rank);
    size = agreed_size(all, mine.size);
    if (size.is_ok()) return StoreRank{.rank = *rank, .size = *size, .generation = mine.generation};
    static_cast<void>(store.remove(key, deadline));
    return size.status();
  }
  return Status(Code::kTimeout, "the ranks changed all the time");
}

}  // namespace

Result<StoreRank> take_rank(KeyValueStore& store, std::string_view scope, int rank, int size,
                            Deadline deadline) {
  if (RankService* service = store.rank_service())
    return service->take_rank(scope, rank, size, deadline);
  if (size < 0 || size > kMostRanks || rank < -1 || rank >= kMostRanks)
    return Status(Code::kInvalidArgument,
                  fmt::format("rank {} of {}: at most {} are allowed", rank, size, kMostRanks));
  return take_by_verbs(store, scope, rank, static_cast<std::uint32_t>(size), deadline);
}

Result<StoreRank> take_freed_rank(KeyValueStore& store, std::string_view scope, int rank, int size,
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
  MEMSPAN_TRY_ASSIGN(const Ranks ranks, ranks_of(store, scope, deadline), "giving up a rank");
  bool had_one = false;
  for (const auto& [rank, taken] : ranks) {
    if (taken.lease != store.lease()) continue;
    had_one = true;
    MEMSPAN_TRY(store.remove(rank_key(prefix_of(scope), rank), deadline).status(),
                "giving up a rank");
  }
  if (had_one) return Status::ok();
  return {Code::kNotFound, fmt::format("this member has no rank in \"{}\"", scope)};
}

}  // namespace memspan
