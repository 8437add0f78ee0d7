// SPDX-License-Identifier: Apache-2.0
// The part of a share that takes slots, by a clock, and gives sections to classes of sizes.
#include <unistd.h>

#include <utility>
#include <vector>

#include "fabric/blocks/block_share.h"

namespace memspan::blocks {
namespace {

// Sweeps of the clock before a section counts as full of entries in use. The first may only clear
// use marks, the second finds unused entries. The third is for marks that others set in between.
constexpr std::uint64_t kSweeps = 3;

}  // namespace

// Claims a slot for this process and evicts its entry, unless a process claims or reads it.
bool BlockShare::take(Seen& seen, std::uint64_t& evicted) const {
  Descriptor& descriptor = *seen.descriptor;
  const Word before = seen.word;
  if (before.state() == State::kClaimed && is_live(before)) return false;
  if (before.state() == State::kReady && is_being_read(descriptor)) return false;
  const Key key = key_of(descriptor);
  const Word mine =
      Word::of(before.generation() + 1, static_cast<std::uint32_t>(getpid()), State::kClaimed);
  std::uint64_t expected = before.bits;
  if (!descriptor.word.compare_exchange_strong(expected, mine.bits, std::memory_order_seq_cst))
    return false;
  // Nothing was written yet: with the same word it is the same entry again.
  if (before.state() == State::kReady && is_being_read(descriptor)) {
    descriptor.word.store(before.bits, std::memory_order_seq_cst);
    return false;
  }
  if (before.state() == State::kReady) ++evicted;
  if (before.state() != State::kFree) unlink(key.hash(), seen);
  seen.word = mine;
  return true;
}

std::optional<Seen> BlockShare::take_in(std::uint32_t section, const SectionGeometry& geometry,
                                        std::uint64_t& evicted) const {
  Section& clock = header_->section[section];
  for (std::uint64_t turn = 0; turn < kSweeps * geometry.slots; ++turn) {
    const std::uint64_t index = clock.hand.fetch_add(1, std::memory_order_relaxed) % geometry.slots;
    Seen seen = slot(section, geometry, index);
    if (seen.word.state() == State::kReady &&
        seen.descriptor->is_used.exchange(0, std::memory_order_relaxed) != 0)
      continue;  // its second chance
    if (!take(seen, evicted)) continue;
    if (clock.slot_bytes.load(std::memory_order_seq_cst) == geometry.slot_bytes) return seen;
    abandon(seen);  // another process gave the section to another class
    return std::nullopt;
  }
  return std::nullopt;
}

// A section without a size takes this one.
std::optional<std::uint32_t> BlockShare::format_section(std::uint64_t slot_bytes) const {
  if (geometry_of(header_->section_bytes, slot_bytes).slots == 0) return std::nullopt;
  for (std::uint32_t section = 0; section < header_->sections; ++section) {
    std::uint64_t none = 0;
    auto& size = header_->section[section].slot_bytes;
    if (size.load(std::memory_order_relaxed) == 0 &&
        size.compare_exchange_strong(none, slot_bytes, std::memory_order_seq_cst))
      return section;
  }
  return std::nullopt;
}

// Gives a section to another class of sizes: claims all its slots, none of which may be in use,
// sets the size, then frees them. A process killed in between leaves claimed slots of either size.
bool BlockShare::empty(std::uint32_t section, std::uint64_t slot_bytes,
                       std::uint64_t& evicted) const {
  const SectionGeometry before = geometry(section);
  if (before.slots == 0) return false;
  std::vector<std::pair<Seen, Word>> taken;
  std::uint64_t count = 0;
  for (std::uint64_t index = 0; index < before.slots; ++index) {
    Seen seen = slot(section, before, index);
    const Word was = seen.word;
    if (!take(seen, count)) break;
    taken.emplace_back(seen, was);
  }
  std::uint64_t size = before.slot_bytes;
  const bool is_done =
      taken.size() == before.slots && header_->section[section].slot_bytes.compare_exchange_strong(
                                          size, slot_bytes, std::memory_order_seq_cst);
  for (const auto& [seen, was] : taken) {
    if (is_done || was.state() != State::kReady) {
      abandon(seen);
      continue;
    }
    link(key_of(*seen.descriptor).hash(), seen);
    seen.descriptor->word.store(was.bits, std::memory_order_seq_cst);
  }
  if (!is_done) return false;
  header_->section[section].hand.store(0, std::memory_order_relaxed);
  evicted += count;
  return true;
}

// Takes a section of the class that has the most sections, if it has more than one.
std::optional<std::uint32_t> BlockShare::empty_section(std::uint64_t slot_bytes,
                                                       std::uint64_t& evicted) {
  if (geometry_of(header_->section_bytes, slot_bytes).slots == 0) return std::nullopt;
  const auto size_of = [&](std::uint32_t section) {
    return header_->section[section].slot_bytes.load(std::memory_order_relaxed);
  };
  const auto of_size = [&](std::uint64_t size) {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < header_->sections; ++i) count += size_of(i) == size ? 1 : 0;
    return count;
  };
  std::uint32_t chosen = 0, most = 1;
  for (std::uint32_t section = 0; section < header_->sections; ++section)
    if (const std::uint32_t count = of_size(size_of(section)); count > most) {
      most = count;
      chosen = section;
    }
  if (most == 1 || size_of(chosen) == slot_bytes) return std::nullopt;
  for (std::uint32_t section = chosen; section < header_->sections; ++section)
    if (size_of(section) == size_of(chosen) && empty(section, slot_bytes, evicted)) return section;
  return std::nullopt;
}

std::optional<Seen> BlockShare::take_of_class(std::uint64_t bytes, Room room,
                                              std::uint64_t& evicted) {
  const std::uint64_t wanted = class_of(bytes);
  bool is_there = false;
  for (std::uint32_t section = 0; section < header_->sections; ++section) {
    const SectionGeometry now = geometry(section);
    if (now.slot_bytes != wanted) continue;
    is_there = true;
    const bool is_untouched =
        header_->section[section].hand.load(std::memory_order_relaxed) < now.slots;
    if (!is_untouched) continue;
    if (auto seen = take_in(section, now, evicted)) return seen;
  }
  if (const auto section = format_section(wanted))
    if (auto seen = take_in(*section, geometry(*section), evicted)) return seen;
  if (room == Room::kUntouched) return std::nullopt;
  if (!is_there) {
    if (const auto section = empty_section(wanted, evicted))
      if (auto seen = take_in(*section, geometry(*section), evicted)) return seen;
  }
  // In turns, so that all sections of the class age equally: the clock with the fewest rounds.
  std::optional<std::uint32_t> chosen;
  double least = 0;
  for (std::uint32_t section = 0; section < header_->sections; ++section) {
    const SectionGeometry now = geometry(section);
    if (is_there ? now.slot_bytes != wanted : now.slot_bytes < bytes) continue;
    const double rounds =
        static_cast<double>(header_->section[section].hand.load(std::memory_order_relaxed)) /
        static_cast<double>(now.slots);
    if (chosen && rounds >= least) continue;
    chosen = section;
    least = rounds;
  }
  return chosen ? take_in(*chosen, geometry(*chosen), evicted) : std::nullopt;
}

}  // namespace memspan::blocks
