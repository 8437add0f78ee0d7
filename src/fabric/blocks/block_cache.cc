// SPDX-License-Identifier: Apache-2.0
#include "fabric/blocks/block_cache.h"

#include <bit>

#include "fabric/pool_copy.h"

namespace memspan::blocks {
namespace {

// A block of this host is copied without waiting for a process. Computing a block of another host
// is cheaper than a longer wait. A member that did not answer is not asked for a while.
constexpr auto kPatience = std::chrono::milliseconds(500);
constexpr auto kRest = std::chrono::seconds(5);

// Whether a copy failed because of the caller's arguments. Otherwise the share's owner is leaving
// or gone, and the entry with it.
bool is_callers(const Status& status) {
  return status.code() == Code::kInvalidArgument;
}

void add(std::atomic<std::uint64_t>& counter, std::uint64_t number = 1) {
  counter.fetch_add(number, std::memory_order_relaxed);
}

// Copies an entry to its slot, at the pool's addresses, from its pieces, or back. As
// PoolCopier::copy().
Status copy_entry(Pool& pool, std::byte* slot, const Pieces& pieces, MoveDirection direction) {
  const bool is_in = direction == MoveDirection::kPut;
  const CopyEnds ends =
      is_in ? CopyEnds{CopyEnd::kLocal, CopyEnd::kPool} : CopyEnds{CopyEnd::kPool, CopyEnd::kLocal};
  PoolCopier copier(pool, ends, kPatience, pieces.bytes());
  std::byte* at = slot;
  for (std::size_t i = 0; i < pieces.count; ++i) {
    void* const piece = pieces.addresses[i];
    if (pieces.sizes[i] == 0) continue;
    MEMSPAN_PASS(copier.copy({is_in ? piece : at, is_in ? at : piece, pieces.sizes[i]}));
    at += pieces.sizes[i];
  }
  return copier.finish();
}

// ---- the share of a member on another host

// It is found and read by copies of the pool, and never written to.
//
//   header ──► cells of the keys ──► descriptors that may be theirs ──► bytes ──► descriptor again
//
// Each arrow is a round trip. It serves all keys, except for the last two, which serve one entry.
// The state word of an entry that was evicted in between differs in the end.

// The header is from another process and is used for addresses, so it must be plausible.
bool is_plausible(const Header& header, std::uint64_t most) {
  return header.magic == kMagic && header.bytes <= most && header.bytes >= kHeaderBytes &&
         std::has_single_bit(header.cells) && header.cells >= kWindow &&
         header.cells <= header.bytes / sizeof(std::uint64_t) && header.sections >= 1 &&
         header.sections <= kMostSections && header.sections_at <= header.bytes &&
         header.section_bytes <= (header.bytes - header.sections_at) / header.sections;
}

// A value: a slot that may have an entry, and that entry at the moment when it was seen, by
// addresses of the pool.
struct RemoteEntry {
  std::size_t key = 0;  // its place among the caller's
  const std::byte* descriptor = nullptr;
  std::byte* data = nullptr;
  std::uint64_t slot_bytes = 0;
  Word word = {};
  std::uint64_t bytes = 0;
};

Status fetch_pieces(Pool& pool, std::span<const CopyPiece> wanted) {
  std::uint64_t bytes = 0;
  for (const CopyPiece& each : wanted) bytes += each.bytes;
  PoolCopier copier(pool, {CopyEnd::kPool, CopyEnd::kLocal}, kPatience, bytes);
  for (const CopyPiece& each : wanted) MEMSPAN_PASS(copier.copy(each));
  return copier.finish();
}

// The ready entries of those keys that `places` names. None when the rank has no share. Fails as
// copies of the pool.
Result<std::vector<RemoteEntry>> find_entries(Pool& pool, std::uint32_t rank,
                                              std::span<const Key> keys,
                                              std::span<const std::size_t> places) {
  std::byte* const base = pool.windows(RangeKind::kHost).begin_of(rank);
  std::vector<RemoteEntry> entries;
  Header header;
  MEMSPAN_PASS(fetch_pieces(pool, std::array{CopyPiece{base, &header, sizeof header}}));
  if (!is_plausible(header, pool.windows(RangeKind::kHost).stride())) return entries;

  using Window = std::array<std::uint64_t, kWindow>;
  std::vector<Window> windows(places.size());
  std::vector<CopyPiece> wanted;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::uint64_t first = keys[places[i]].hash() & (header.cells - kWindow);
    wanted.push_back(
        {base + kHeaderBytes + first * sizeof(std::uint64_t), windows[i].data(), sizeof(Window)});
  }
  MEMSPAN_PASS(fetch_pieces(pool, wanted));

  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::uint64_t fingerprint = cell_of(keys[places[i]].hash(), 0) >> 32;
    for (const std::uint64_t cell : windows[i]) {
      const std::uint64_t section = section_of_cell(cell), index = index_of_cell(cell);
      if (cell >> 32 != fingerprint || section >= header.sections) continue;
      const SectionGeometry geometry =
          geometry_of(header.section_bytes, header.section[section].slot_bytes);
      if (index >= geometry.slots) continue;
      std::byte* const begin = base + header.sections_at + section * header.section_bytes;
      entries.push_back({.key = places[i],
                         .descriptor = begin + index * sizeof(Descriptor),
                         .data = begin + geometry.slots_at + index * geometry.slot_bytes,
                         .slot_bytes = geometry.slot_bytes});
    }
  }
  if (entries.empty()) return entries;
  std::vector<Descriptor> descriptors(entries.size());
  wanted.clear();
  for (std::size_t i = 0; i < entries.size(); ++i)
    wanted.push_back({entries[i].descriptor, &descriptors[i], sizeof(Descriptor)});
  MEMSPAN_PASS(fetch_pieces(pool, wanted));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    RemoteEntry& entry = entries[i];
    entry.bytes = descriptors[i].bytes;
    if (key_of(descriptors[i]) == keys[entry.key] && entry.bytes <= entry.slot_bytes)
      entry.word = {descriptors[i].word};
  }
  std::erase_if(entries, [](const auto& entry) { return entry.word.state() != State::kReady; });
  return entries;
}

// False if the entry has been evicted.
Result<bool> read_entry(Pool& pool, const RemoteEntry& entry, const Pieces& to) {
  MEMSPAN_PASS(copy_entry(pool, entry.data, to, MoveDirection::kGet));
  std::uint64_t word = 0;
  static_assert(offsetof(Descriptor, word) == 0);
  MEMSPAN_PASS(fetch_pieces(pool, std::array{CopyPiece{entry.descriptor, &word, sizeof word}}));
  return word == entry.word.bits;
}

}  // namespace

template <typename Action>
bool BlockCache::with_share(std::uint32_t rank, Action action) {
  RankWindows& windows = pool_.windows(RangeKind::kHost);
  const std::uint64_t mapped = pool_.hold(windows, rank);
  if (mapped == 0) return false;
  auto release = [&](RankWindows* held) { pool_.release(*held, rank); };
  const std::unique_ptr<RankWindows, decltype(release)> held(&windows, release);
  auto share = BlockShare::open(windows.begin_of(rank), mapped);
  return share && action(*share);
}

template <typename Action>
bool BlockCache::any_share(Action action) {
  for (std::uint32_t rank = 0; rank < pool_.ranks(); ++rank)
    if (with_share(rank, action)) return true;
  return false;
}

template <typename IsWanted, typename Use>
Status BlockCache::ask_others(std::span<const Key> keys, IsWanted is_wanted, Use use) {
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

// ---- finding

void BlockCache::lookup(std::span<const Key> keys, std::span<std::uint64_t> bytes) {
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

// ---- putting

// The shares of this host that may be written to: the one that the key chooses, weighted by size,
// and those behind it.
std::vector<std::uint32_t> BlockCache::shares_for(const Key& key) {
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

// The copy holds the window once more. A claim in a share whose owner ends now is lost with it.
Result<Outcome> BlockCache::put_one(const Key& key, const Pieces& from, std::uint64_t bytes) {
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

Status BlockCache::put(std::span<const Key> keys, const Pieces& from, std::span<Outcome> outcomes) {
  std::fill(outcomes.begin(), outcomes.end(), Outcome::kNoRoom);
  const std::uint64_t bytes = from.bytes();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    MEMSPAN_TRY_ASSIGN(auto outcome, put_one(keys[i], from.at(i), bytes), fmt::format("key {}", i));
    outcomes[i] = outcome;
    if (outcome == Outcome::kPresent) add(counters_.present);
    if (outcome == Outcome::kNoRoom) add(counters_.no_room);
    if (outcome != Outcome::kDone) continue;
    add(counters_.put);
    add(counters_.put_bytes, bytes);
  }
  return Status::ok();
}

// ---- getting

Result<Outcome> BlockCache::get_near(const Key& key, const Pieces& to, std::uint64_t bytes) {
  Status failure;
  const bool is_got = any_share([&](const BlockShare& share) {
    const auto seen = share.find(key);
    if (!seen || seen->word.state() != State::kReady) return false;
    const auto place = share.begin_read(*seen);
    if (!place) return false;
    Status status =
        seen->bytes == bytes
            ? copy_entry(pool_, seen->data, to, MoveDirection::kGet)
            : Status(Code::kInvalidArgument,
                     fmt::format("the entry has {} bytes, and the pieces {}", seen->bytes, bytes));
    if (!share.end_read(*seen, *place)) return false;
    if (is_callers(status)) failure = status;
    return status.is_ok() || is_callers(status);
  });
  if (!failure.is_ok()) return failure;
  return is_got ? Outcome::kDone : Outcome::kAbsent;
}

Status BlockCache::get(std::span<const Key> keys, const Pieces& to, std::span<Outcome> outcomes) {
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

bool BlockCache::remove(const Key& key) {
  bool is_removed = false;
  any_share([&](BlockShare& share) {
    while (share.remove(key)) is_removed = true;
    return false;
  });
  return is_removed;
}

ShareUse BlockCache::use() {
  ShareUse sum;
  any_share([&](const BlockShare& share) {
    sum = share.use(sum);
    return false;
  });
  return sum;
}

}  // namespace memspan::blocks
