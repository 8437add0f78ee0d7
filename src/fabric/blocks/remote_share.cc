// SPDX-License-Identifier: Apache-2.0
#include "fabric/blocks/remote_share.h"

#include <algorithm>
#include <array>
#include <bit>

#include "fabric/pool_copy.h"

namespace memspan::blocks {
namespace {

// Bytes of an atomic that came by a copy.
template <typename T>
T loaded(const std::atomic<T>& copied) {
  return copied.load(std::memory_order_relaxed);
}

// The header is from another process and is used for addresses, so it must be plausible.
bool is_plausible(const Header& header, std::uint64_t most) {
  return loaded(header.magic) == kMagic && header.bytes <= most && header.bytes >= kHeaderBytes &&
         std::has_single_bit(header.cells) && header.cells >= kWindow &&
         header.cells <= header.bytes / sizeof(std::uint64_t) && header.sections >= 1 &&
         header.sections <= kMostSections && header.sections_at <= header.bytes &&
         header.section_bytes <= (header.bytes - header.sections_at) / header.sections;
}

struct Candidate {
  std::size_t key = 0;
  SectionGeometry geometry = {};
  std::byte* section = nullptr;
  std::uint64_t index = 0;
};

}  // namespace

Status RemoteShare::fetch(std::span<const Wanted> wanted) {
  std::uint64_t bytes = 0;
  for (const Wanted& each : wanted) bytes += each.bytes;
  PoolCopier copier(pool_, {CopyEnd::kPool, CopyEnd::kLocal}, limit_, bytes);
  for (const Wanted& each : wanted) MEMSPAN_PASS(copier.copy({each.from, each.to, each.bytes}));
  return copier.finish();
}

Result<std::vector<std::optional<RemoteEntry>>> RemoteShare::find(std::span<const Key> keys) {
  std::vector<std::optional<RemoteEntry>> entries(keys.size());
  Header header;
  MEMSPAN_PASS(fetch(std::array{Wanted{base_, &header, sizeof header}}));
  if (!is_plausible(header, pool_.windows(RangeKind::kHost).stride())) return entries;

  using Window = std::array<std::uint64_t, kWindow>;
  std::vector<Window> windows(keys.size());
  std::vector<Wanted> wanted;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint64_t first = keys[i].hash() & (header.cells - kWindow);
    wanted.push_back(
        {base_ + kHeaderBytes + first * sizeof(std::uint64_t), windows[i].data(), sizeof(Window)});
  }
  MEMSPAN_PASS(fetch(wanted));

  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint64_t fingerprint = cell_of(keys[i].hash(), 0, 0) >> 32;
    for (const std::uint64_t cell : windows[i]) {
      const std::uint64_t section = (cell & 0xffff'ffff) >> kIndexBits;
      const std::uint64_t index = cell & ((std::uint64_t{1} << kIndexBits) - 1);
      if (cell >> 32 != fingerprint || section >= header.sections) continue;
      const SectionGeometry geometry =
          geometry_of(header.section_bytes, loaded(header.section[section].slot_bytes));
      if (index >= geometry.slots) continue;
      candidates.push_back(
          {i, geometry, base_ + header.sections_at + section * header.section_bytes, index});
    }
  }
  if (candidates.empty()) return entries;
  std::vector<Descriptor> descriptors(candidates.size());
  wanted.clear();
  for (std::size_t i = 0; i < candidates.size(); ++i)
    wanted.push_back({candidates[i].section + candidates[i].index * sizeof(Descriptor),
                      &descriptors[i], sizeof(Descriptor)});
  MEMSPAN_PASS(fetch(wanted));
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    Key key;
    for (std::size_t word = 0; word < key.words.size(); ++word)
      key.words[word] = loaded(descriptors[i].key[word]);
    const Word word{loaded(descriptors[i].word)};
    const std::uint64_t bytes = loaded(descriptors[i].bytes);
    if (word.state() != State::kReady || key != keys[candidate.key] ||
        bytes > candidate.geometry.slot_bytes)
      continue;
    entries[candidate.key] = RemoteEntry{.descriptor = wanted[i].from,
                                         .data = candidate.section + candidate.geometry.slots_at +
                                                 candidate.index * candidate.geometry.slot_bytes,
                                         .word = word,
                                         .bytes = bytes};
  }
  return entries;
}

Result<bool> RemoteShare::read(const RemoteEntry& entry, const Pieces& to) {
  MEMSPAN_PASS(copy_entry(pool_, entry.data, to, Direction::kFromSlot, limit_));
  std::uint64_t word = 0;
  static_assert(offsetof(Descriptor, word) == 0);
  MEMSPAN_PASS(fetch(std::array{Wanted{entry.descriptor, &word, sizeof word}}));
  return word == entry.word.bits;
}

}  // namespace memspan::blocks
