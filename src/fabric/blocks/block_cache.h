// SPDX-License-Identifier: Apache-2.0
// Entries by key in the shares of a pool's members: choice of the share, lookups and copies
// (docs/design/0022-kv-pool.md). block_share.h has the inside of a share.
//
// A share is used only while its window is held (pool.h), so that it stays mapped if its
// owner leaves or dies.
#pragma once

#include <numeric>

#include "fabric/blocks/block_share.h"
#include "fabric/pool.h"

namespace memspan::blocks {

// The addresses and sizes of an entry's pieces, its source or destination. A value; borrows.
struct Pieces {
  void* const* addresses = nullptr;
  const std::uint64_t* sizes = nullptr;
  std::size_t count = 0;
  // The bytes of one entry.
  std::uint64_t bytes() const { return std::accumulate(sizes, sizes + count, std::uint64_t{0}); }
  Pieces at(std::size_t entry) const { return {addresses + entry * count, sizes, count}; }
};

enum class Outcome : std::int8_t { kNoRoom = -1, kAbsent = 0, kDone = 1, kPresent = 2 };

// The counters of this process, in no order among each other.
struct Counters {
  std::atomic<std::uint64_t> looked_up{0}, found{0}, got{0}, got_bytes{0}, got_remote{0}, missed{0},
      put{0}, put_bytes{0}, present{0}, no_room{0}, evicted{0};
};

// Thread-safe.
class BlockCache {
 public:
  // Makes the share of this process. The pool must outlive it. As BlockShare::format(); a process
  // that gives no memory has no share.
  static Result<std::unique_ptr<BlockCache>> create(Pool& pool, std::uint32_t sections) {
    const std::uint64_t bytes = pool.contribution(RangeKind::kHost).bytes;
    if (bytes > 0)
      MEMSPAN_PASS(BlockShare::format(pool.windows(RangeKind::kHost).begin_of(pool.rank()), bytes,
                                      sections));
    return std::unique_ptr<BlockCache>(new BlockCache(pool));
  }

  // Writes the size of each key's entry to `bytes`, 0 for a missing one.
  void lookup(std::span<const Key> keys, std::span<std::uint64_t> bytes);
  // The pieces of key i begin at addresses[i * pieces.count]. kInvalidArgument: a piece has no
  // memory. The earlier keys then have their outcomes, and the later ones count as not given.
  Status put(std::span<const Key> keys, const Pieces& from, std::span<Outcome> outcomes);
  // As put(); also kInvalidArgument if the entry has another number of bytes.
  Status get(std::span<const Key> keys, const Pieces& to, std::span<Outcome> outcomes);
  bool remove(const Key& key);

  const Counters& counters() const { return counters_; }
  // The sum over the shares on this host.
  ShareUse use();

 private:
  explicit BlockCache(Pool& pool)
      : pool_(pool), asked_again_(std::make_unique<std::atomic<Clock::rep>[]>(pool.ranks())) {}
  // Returns action(share), called while the window is held; false if it has no share here.
  template <typename Action>
  bool with_share(std::uint32_t rank, Action action);
  // Calls action(share) for the held shares of this host until it returns true.
  template <typename Action>
  bool any_share(Action action);
  Result<Outcome> put_one(const Key& key, const Pieces& from, std::uint64_t bytes);
  Result<Outcome> get_near(const Key& key, const Pieces& to, std::uint64_t bytes);
  // Asks the members on other hosts, one after the other, for the keys that is_wanted(i) names, and
  // calls use(entry) for those they have. Returns the first failure that is the caller's.
  template <typename IsWanted, typename Use>
  Status ask_others(std::span<const Key> keys, IsWanted is_wanted, Use use);
  std::vector<std::uint32_t> shares_for(const Key& key);
  bool may_ask(std::uint32_t rank) const {
    return rank != pool_.rank() && pool_.is_remote(rank) &&
           Clock::now().time_since_epoch().count() >=
               asked_again_[rank].load(std::memory_order_relaxed);
  }

  Pool& pool_;
  Counters counters_;
  // By rank: when a member on another host that did not answer may be asked again.
  std::unique_ptr<std::atomic<Clock::rep>[]> asked_again_;
};

}  // namespace memspan::blocks
