// SPDX-License-Identifier: Apache-2.0
// Entries by key in the shares of a pool's members: which share an entry goes to, where it is
// found, and the copies (docs/design/0022-kv-pool.md). What happens in a share is block_share.h.
//
// A share is used while its window is held (rank_windows.h), so that it stays mapped when its owner
// leaves or dies in the middle.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "fabric/blocks/block_share.h"
#include "fabric/pool.h"

namespace memspan::blocks {

// Where an entry's bytes are, or go: addresses and sizes of its pieces. A value; borrows.
struct Pieces {
  void* const* addresses = nullptr;
  const std::uint64_t* sizes = nullptr;
  std::size_t count = 0;
  std::uint64_t bytes() const;  // of one entry
  Pieces at(std::size_t entry) const { return {addresses + entry * count, sizes, count}; }
};
// Copies an entry between its slot, at the pool's addresses, and its pieces. As PoolCopier::copy().
enum class Direction { kToSlot, kFromSlot };
Status copy_entry(Pool& pool, std::byte* slot, const Pieces& pieces, Direction direction,
                  Duration limit);

enum class Outcome : std::int8_t { kNoRoom = -1, kAbsent = 0, kDone = 1, kPresent = 2 };

// Of this process. Counters alone: no order among them.
struct Counters {
  std::atomic<std::uint64_t> looked_up{0}, found{0}, got{0}, got_bytes{0}, got_remote{0}, missed{0},
      put{0}, put_bytes{0}, present{0}, no_room{0}, evicted{0};
};

// Thread-safe.
class BlockCache {
 public:
  // Makes the share of this process. The pool must outlive it. As BlockShare::format(); a process
  // that gives no memory has no share.
  static Result<std::unique_ptr<BlockCache>> create(Pool& pool, std::uint32_t sections);
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // The bytes of each key's entry into `bytes`, 0 for none.
  void lookup(std::span<const Key> keys, std::span<std::uint64_t> bytes);
  // Key i's pieces begin at addresses[i * pieces.count]. kInvalidArgument for pieces without
  // memory; the outcomes of the keys before are right then, the others as if they had not been
  // given.
  Status put(std::span<const Key> keys, const Pieces& from, std::span<Outcome> outcomes);
  // The same, and kInvalidArgument when the entry has another number of bytes.
  Status get(std::span<const Key> keys, const Pieces& to, std::span<Outcome> outcomes);
  bool remove(const Key& key);

  const Counters& counters() const { return counters_; }
  // The sum over the shares on this host, and how many these are.
  ShareUse use(std::uint64_t& shares);

 private:
  explicit BlockCache(Pool& pool)
      : pool_(pool), asked_again_(std::make_unique<std::atomic<Clock::rep>[]>(pool.ranks())) {}
  // Calls action(share, rank) for the shares of this host, held, until one gives true.
  template <typename Action>
  bool any_share(Action action);
  Result<Outcome> put_one(const Key& key, const Pieces& from, std::uint64_t bytes);
  Result<Outcome> get_near(const Key& key, const Pieces& to, std::uint64_t bytes);
  Status get_far(std::span<const Key> keys, const Pieces& to, std::span<Outcome> outcomes);
  // A claimed slot and the rank whose window is held for it.
  struct Claimed {
    Seen seen;
    std::uint32_t rank = 0;
  };
  std::optional<Claimed> claim(const Key& key, std::uint64_t bytes);
  std::optional<Claimed> claim_in(std::uint32_t rank, const Key& key, std::uint64_t bytes,
                                  Room room);
  std::vector<std::uint32_t> shares_for(const Key& key);
  bool may_ask(std::uint32_t rank) const;
  void suspend(std::uint32_t rank);

  Pool& pool_;
  Counters counters_;
  // By rank on another host: not asked before then, since it did not answer.
  std::unique_ptr<std::atomic<Clock::rep>[]> asked_again_;
};

}  // namespace memspan::blocks
