// SPDX-License-Identifier: Apache-2.0
// Entries by key in the shares of a pool's members: choice of the share, lookups and copies
// (docs/design/0022-kv-pool.md). block_share.h has the inside of a share.
//
// A share is used only while its window is held (pool.h), so that it stays mapped if its
// owner leaves or dies.
#pragma once

#include "fabric/blocks/remote_share.h"

namespace memspan::blocks {

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
  void lookup(std::span<const Key> keys, std::span<std::uint64_t> bytes) {
    std::fill(bytes.begin(), bytes.end(), 0);
    std::size_t found = 0;
    any_share([&](const BlockShare& share) {
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (bytes[i] != 0) continue;
        const auto seen = share.find(keys[i]);
        if (!seen || seen->word.state() != State::kReady) continue;
        if (share.is_writable()) BlockShare::touch(*seen);
        bytes[i] = seen->bytes;
        ++found;
      }
      return found == keys.size();
    });
    const auto is_missing = [&](std::size_t i) { return bytes[i] == 0; };
    static_cast<void>(ask_others(keys, is_missing, [&](const RemoteEntry& entry) {
      if (is_missing(entry.key)) ++found;
      bytes[entry.key] = entry.bytes;
      return Status::ok();
    }));
    add(counters_.looked_up, keys.size());
    add(counters_.found, found);
  }
  // The pieces of key i begin at addresses[i * pieces.count]. kInvalidArgument: a piece has no
  // memory. The earlier keys then have their outcomes, and the later ones count as not given.
  Status put(std::span<const Key> keys, const Pieces& from, std::span<Outcome> outcomes) {
    std::fill(outcomes.begin(), outcomes.end(), Outcome::kNoRoom);
    const std::uint64_t bytes = from.bytes();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      MEMSPAN_TRY_ASSIGN(auto outcome, put_one(keys[i], from.at(i), bytes),
                         fmt::format("key {}", i));
      outcomes[i] = outcome;
      if (outcome == Outcome::kPresent) add(counters_.present);
      if (outcome == Outcome::kNoRoom) add(counters_.no_room);
      if (outcome != Outcome::kDone) continue;
      add(counters_.put);
      add(counters_.put_bytes, bytes);
    }
    return Status::ok();
  }
  // As put(); also kInvalidArgument if the entry has another number of bytes.
  Status get(std::span<const Key> keys, const Pieces& to, std::span<Outcome> outcomes) {
    std::fill(outcomes.begin(), outcomes.end(), Outcome::kAbsent);
    const std::uint64_t bytes = to.bytes();
    Status status;
    for (std::size_t i = 0; i < keys.size() && status.is_ok(); ++i) {
      auto outcome = get_near(keys[i], to.at(i), bytes);
      status = outcome.status().annotate(fmt::format("key {}", i));
      if (outcome.is_ok()) outcomes[i] = *outcome;
    }
    const auto is_absent = [&](std::size_t i) { return outcomes[i] == Outcome::kAbsent; };
    // Entries that arrive are also put into a share of this host.
    const auto take_over = [&](const RemoteEntry& entry) -> Status {
      if (entry.bytes != bytes || !is_absent(entry.key)) return Status::ok();
      const Pieces pieces = to.at(entry.key);
      MEMSPAN_PASS_ASSIGN(const bool is_read, read_entry(pool_, entry, pieces));
      if (!is_read) return Status::ok();
      outcomes[entry.key] = Outcome::kDone;
      add(counters_.got_remote);
      return put_one(keys[entry.key], pieces, bytes).status();
    };
    if (status.is_ok()) status = ask_others(keys, is_absent, take_over);
    const auto got =
        static_cast<std::uint64_t>(std::count(outcomes.begin(), outcomes.end(), Outcome::kDone));
    add(counters_.got, got);
    add(counters_.got_bytes, got * bytes);
    add(counters_.missed, keys.size() - got);
    return status;
  }
  bool remove(const Key& key) {
    bool is_removed = false;
    any_share([&](BlockShare& share) {
      while (share.remove(key)) is_removed = true;
      return false;
    });
    return is_removed;
  }

  const Counters& counters() const { return counters_; }
  // The sum over the shares on this host.
  ShareUse use() {
    ShareUse sum;
    any_share([&](const BlockShare& share) {
      sum = share.use(sum);
      return false;
    });
    return sum;
  }

 private:
  // A member that did not answer is not asked for a while.
  static constexpr auto kRest = std::chrono::seconds(5);
  // Whether a copy failed because of the caller's arguments. Otherwise the share's owner is leaving
  // or gone, and the entry with it.
  static bool is_callers(const Status& status) { return status.code() == Code::kInvalidArgument; }
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t number = 1) {
    counter.fetch_add(number, std::memory_order_relaxed);
  }

  explicit BlockCache(Pool& pool)
      : pool_(pool), asked_again_(std::make_unique<std::atomic<Clock::rep>[]>(pool.ranks())) {}
  // Returns action(share), called while the window is held; false if it has no share here.
  template <typename Action>
  bool with_share(std::uint32_t rank, Action action) {
    RankWindows& windows = pool_.windows(RangeKind::kHost);
    const std::uint64_t mapped = pool_.hold(windows, rank);
    if (mapped == 0) return false;
    auto release = [&](RankWindows* held) { pool_.release(*held, rank); };
    const std::unique_ptr<RankWindows, decltype(release)> held(&windows, release);
    auto share = BlockShare::open(windows.begin_of(rank), mapped);
    return share && action(*share);
  }
  // Calls action(share) for the held shares of this host until it returns true.
  template <typename Action>
  bool any_share(Action action) {
    for (std::uint32_t rank = 0; rank < pool_.ranks(); ++rank)
      if (with_share(rank, action)) return true;
    return false;
  }
  // The copy holds the window once more. A claim in a share whose owner ends now is lost with it.
  Result<Outcome> put_one(const Key& key, const Pieces& from, std::uint64_t bytes) {
    if (any_share([&](const BlockShare& share) { return share.find(key).has_value(); }))
      return Outcome::kPresent;
    const auto ranks = shares_for(key);
    Outcome outcome = Outcome::kNoRoom;
    Status refused;
    for (const Room room : {Room::kUntouched, Room::kAny})
      for (const std::uint32_t rank : ranks) {
        const auto put_in = [&](BlockShare& share) {
          std::uint64_t evicted = 0;
          const auto claimed = share.claim(key, bytes, room, evicted);
          add(counters_.evicted, evicted);
          if (!claimed) return false;
          const Status status = copy_entry(pool_, claimed->data, from, MoveDirection::kPut);
          if (status.is_ok())
            share.publish(*claimed);
          else
            share.abandon(*claimed);
          if (status.is_ok()) outcome = Outcome::kDone;
          if (is_callers(status)) refused = status;
          return true;
        };
        if (!with_share(rank, put_in)) continue;
        MEMSPAN_PASS(refused);
        return outcome;
      }
    return outcome;
  }
  Result<Outcome> get_near(const Key& key, const Pieces& to, std::uint64_t bytes) {
    Status failure;
    const bool is_got = any_share([&](const BlockShare& share) {
      const auto seen = share.find(key);
      if (!seen || seen->word.state() != State::kReady) return false;
      const auto place = share.begin_read(*seen);
      if (!place) return false;
      Status status = seen->bytes == bytes
                          ? copy_entry(pool_, seen->data, to, MoveDirection::kGet)
                          : Status(Code::kInvalidArgument,
                                   fmt::format("the entry has {} bytes, and the pieces {}",
                                               seen->bytes, bytes));
      if (!share.end_read(*seen, *place)) return false;
      if (is_callers(status)) failure = status;
      return status.is_ok() || is_callers(status);
    });
    if (!failure.is_ok()) return failure;
    return is_got ? Outcome::kDone : Outcome::kAbsent;
  }
  // Asks the members on other hosts, one after the other, for the keys that is_wanted(i) names, and
  // calls use(entry) for those they have. Returns the first failure that is the caller's.
  template <typename IsWanted, typename Use>
  Status ask_others(std::span<const Key> keys, IsWanted is_wanted, Use use) {
    if (!pool_.is_spread()) return Status::ok();
    std::vector<std::size_t> places;
    for (std::uint32_t rank = 0; rank < pool_.ranks(); ++rank) {
      if (!may_ask(rank)) continue;
      places.clear();
      for (std::size_t i = 0; i < keys.size(); ++i)
        if (is_wanted(i)) places.push_back(i);
      if (places.empty()) break;
      const auto entries = find_entries(pool_, rank, keys, places);
      bool is_answered = entries.is_ok();
      for (std::size_t i = 0; is_answered && i < entries->size(); ++i) {
        Status status = use((*entries)[i]);
        if (is_callers(status)) return status;
        is_answered = status.is_ok();
      }
      if (!is_answered)
        asked_again_[rank].store((Clock::now() + kRest).time_since_epoch().count(),
                                 std::memory_order_relaxed);
    }
    return Status::ok();
  }
  // The shares of this host that may be written to: the one that the key chooses, weighted by size,
  // and those behind it.
  std::vector<std::uint32_t> shares_for(const Key& key) {
    std::vector<std::uint32_t> ranks;
    std::vector<std::uint64_t> ends;
    std::uint64_t sum = 0;
    for (std::uint32_t rank = 0; rank < pool_.ranks(); ++rank)
      with_share(rank, [&](const BlockShare& share) {
        if (!share.is_writable()) return false;
        ranks.push_back(rank);
        ends.push_back(sum += share.capacity());
        return true;
      });
    if (sum == 0) return {};
    // Other bits than those that choose the cell.
    const std::uint64_t chosen = (key.hash() * 0x9e37'79b9'7f4a'7c15 >> 8) % sum;
    const auto at = std::upper_bound(ends.begin(), ends.end(), chosen) - ends.begin();
    std::rotate(ranks.begin(), ranks.begin() + at, ranks.end());
    return ranks;
  }
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
