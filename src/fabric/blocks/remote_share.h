// SPDX-License-Identifier: Apache-2.0
// The share of a member on another host.
//
// It is found and read by copies of the pool, and never written to.
//
//   header ──► cells of the keys ──► descriptors that may be theirs ──► bytes ──► descriptor again
//
// Each arrow is a round trip. It serves all keys, except for the last two, which serve one entry.
// The state word of an entry that was evicted in between differs in the end.
#pragma once

#include <bit>
#include <numeric>

#include "fabric/blocks/block_share.h"
#include "fabric/pool_copy.h"

namespace memspan::blocks {

// A block of this host is copied without waiting for a process. Computing a block of another host
// is cheaper than a longer wait.
inline constexpr auto kBlockPatience = std::chrono::milliseconds(500);

// The addresses and sizes of an entry's pieces, its source or destination. A value; borrows.
struct Pieces {
  void* const* addresses = nullptr;
  const std::uint64_t* sizes = nullptr;
  std::size_t count = 0;
  // The bytes of one entry.
  std::uint64_t bytes() const { return std::accumulate(sizes, sizes + count, std::uint64_t{0}); }
  Pieces at(std::size_t entry) const { return {addresses + entry * count, sizes, count}; }
};

// Copies an entry to its slot, at the pool's addresses, from its pieces, or back. As
// PoolCopier::copy().
inline Status copy_entry(Pool& pool, std::byte* slot, const Pieces& pieces,
                         MoveDirection direction) {
  const bool is_in = direction == MoveDirection::kPut;
  const CopyEnds ends =
      is_in ? CopyEnds{CopyEnd::kLocal, CopyEnd::kPool} : CopyEnds{CopyEnd::kPool, CopyEnd::kLocal};
  PoolCopier copier(pool, ends, kBlockPatience, pieces.bytes());
  std::byte* at = slot;
  for (std::size_t i = 0; i < pieces.count; ++i) {
    void* const piece = pieces.addresses[i];
    if (pieces.sizes[i] == 0) continue;
    MEMSPAN_PASS(copier.copy({is_in ? piece : at, is_in ? at : piece, pieces.sizes[i]}));
    at += pieces.sizes[i];
  }
  return copier.finish();
}

// The header is from another process and is used for addresses, so it must be plausible.
inline bool is_plausible(const Header& header, std::uint64_t most) {
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

inline Status fetch_pieces(Pool& pool, std::span<const CopyPiece> wanted) {
  std::uint64_t bytes = 0;
  for (const CopyPiece& each : wanted) bytes += each.bytes;
  PoolCopier copier(pool, {CopyEnd::kPool, CopyEnd::kLocal}, kBlockPatience, bytes);
  for (const CopyPiece& each : wanted) MEMSPAN_PASS(copier.copy(each));
  return copier.finish();
}

// The ready entries of those keys that `places` names. None when the rank has no share. Fails as
// copies of the pool.
inline Result<std::vector<RemoteEntry>> find_entries(Pool& pool, std::uint32_t rank,
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
inline Result<bool> read_entry(Pool& pool, const RemoteEntry& entry, const Pieces& to) {
  MEMSPAN_PASS(copy_entry(pool, entry.data, to, MoveDirection::kGet));
  std::uint64_t word = 0;
  static_assert(offsetof(Descriptor, word) == 0);
  MEMSPAN_PASS(fetch_pieces(pool, std::array{CopyPiece{entry.descriptor, &word, sizeof word}}));
  return word == entry.word.bits;
}

}  // namespace memspan::blocks
