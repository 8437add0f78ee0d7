// SPDX-License-Identifier: Apache-2.0
#include "fabric/blocks/block_share.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "node/process.h"

namespace memspan::blocks {
namespace {

constexpr std::uint64_t kUsualSection = std::uint64_t{64} << 20;
constexpr std::uint64_t kLeastSection = std::uint64_t{512} << 10;

std::uint32_t own_process() {
  return static_cast<std::uint32_t>(getpid());
}

// Sweeps of the clock before a section counts as full of entries in use. The first may only clear
// use marks, the second finds unused entries. The third is for marks that others set in between.
constexpr std::uint64_t kSweeps = 3;

}  // namespace

// ---- making and opening

Status BlockShare::format(void* base, std::uint64_t bytes, std::uint32_t sections) {
  if (bytes < kLeastShare)
    return {Code::kInvalidArgument,
            fmt::format("a share has {} bytes, allowed are {} and more", bytes, kLeastShare)};
  const std::uint64_t cells =
      std::bit_ceil(std::max<std::uint64_t>(kWindow, 2 * bytes / kLeastSlot));
  const std::uint64_t sections_at =
      align_up(kHeaderBytes + cells * sizeof(std::uint64_t), kSlotAlignment);
  const std::uint64_t room = bytes - sections_at;
  if (sections == 0)
    sections = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(room / kUsualSection, 1, kMostSections));
  if (sections > kMostSections || room / sections < kLeastSection)
    return {Code::kInvalidArgument,
            fmt::format("a share of {} bytes has {} sections, allowed are up to {}", bytes,
                        sections, std::min<std::uint64_t>(kMostSections, room / kLeastSection))};
  auto* header = static_cast<Header*>(base);
  header->bytes = bytes;
  header->pid_namespace = ProcessIdentity::own().pid_namespace;
  header->cells = cells;
  header->sections = sections;
  header->section_bytes = room / sections / kSlotAlignment * kSlotAlignment;
  header->sections_at = sections_at;
  header->magic.store(kMagic, std::memory_order_release);  // pairs with open()
  return Status::ok();
}

std::optional<BlockShare> BlockShare::open(void* base, std::uint64_t bytes) {
  if (bytes < kLeastShare) return std::nullopt;
  auto* header = static_cast<Header*>(base);
  if (header->magic.load(std::memory_order_acquire) != kMagic || header->bytes > bytes)
    return std::nullopt;
  // Asked once: a process does not change its namespace.
  static const std::int64_t own_namespace = ProcessIdentity::own().pid_namespace;
  return BlockShare(header, own_namespace != 0 && own_namespace == header->pid_namespace);
}

// ---- the table

Seen BlockShare::slot(std::uint32_t section, const SectionGeometry& geometry,
                      std::uint64_t index) const {
  auto* const descriptor = reinterpret_cast<Descriptor*>(section_at(section)) + index;
  return {.place = section << kIndexBits | static_cast<std::uint32_t>(index),
          .geometry = geometry,
          .descriptor = descriptor,
          .data = section_at(section) + geometry.slots_at + index * geometry.slot_bytes,
          .word = {descriptor->word.load(std::memory_order_acquire)}};
}

std::optional<Seen> BlockShare::slot_of_cell(std::uint64_t cell) const {
  const std::uint32_t section = section_of_cell(cell);
  const std::uint64_t index = index_of_cell(cell);
  if (section >= header_->sections) return std::nullopt;
  const SectionGeometry now = geometry(section);
  if (index >= now.slots) return std::nullopt;
  return slot(section, now, index);
}

bool BlockShare::is_live(Word word) const {
  const std::uint32_t process = word.process();
  return !is_writable_ || process == own_process() || !has_ended(static_cast<pid_t>(process));
}

std::optional<Seen> BlockShare::find(const Key& key) const {
  const std::uint64_t hash = key.hash();
  const std::uint64_t fingerprint = cell_of(hash, 0) >> 32;
  for (const auto& place : window_of(hash)) {
    const std::uint64_t cell = place.load(std::memory_order_acquire);  // pairs with link()
    if (cell >> 32 != fingerprint) continue;
    auto seen = slot_of_cell(cell);
    if (!seen || seen->word.state() == State::kFree || key_of(*seen->descriptor) != key) continue;
    seen->bytes = seen->descriptor->bytes.load(std::memory_order_acquire);
    if (seen->descriptor->word.load(std::memory_order_relaxed) != seen->word.bits) continue;
    if (seen->bytes > seen->geometry.slot_bytes) continue;
    if (seen->word.state() == State::kReady || is_live(seen->word)) return seen;
  }
  return std::nullopt;
}

void BlockShare::link(std::uint64_t hash, const Seen& seen) const {
  const std::uint64_t made = cell_of(hash, seen.place);
  for (auto& place : window_of(hash)) {
    std::uint64_t cell = place.load(std::memory_order_acquire);
    if ((cell == 0 || is_stale(cell, first_cell(hash))) &&
        place.compare_exchange_strong(cell, made, std::memory_order_seq_cst))
      return;
  }
  // Full: one of them is no longer found, and the clock will reach it.
  window_of(hash)[(hash >> 27) % kWindow].store(made, std::memory_order_seq_cst);
}

void BlockShare::unlink(std::uint64_t hash, const Seen& seen) const {
  const std::uint64_t gone = cell_of(hash, seen.place);
  for (auto& place : window_of(hash)) {
    std::uint64_t cell = gone;
    place.compare_exchange_strong(cell, 0, std::memory_order_seq_cst);
  }
}

// ---- reading

// Sequentially consistent, as in take(): either that sees this reader, or this sees the slot
// claimed.
std::optional<std::uint32_t> BlockShare::begin_read(const Seen& seen) const {
  std::uint32_t place = is_writable_ ? 0 : kReaders;
  for (; place < kReaders; ++place) {
    std::uint32_t nobody = 0;
    if (seen.descriptor->readers[place].compare_exchange_strong(nobody, own_process(),
                                                                std::memory_order_seq_cst))
      break;
  }
  if (seen.descriptor->word.load(std::memory_order_seq_cst) == seen.word.bits) {
    if (is_writable_) touch(seen);
    return place;
  }
  if (place < kReaders) seen.descriptor->readers[place].store(0, std::memory_order_release);
  return std::nullopt;
}

bool BlockShare::end_read(const Seen& seen, std::uint32_t place) const {
  // For a reader without a place: the copy's loads precede the look at the word. A releasing
  // read-modify-write orders them, also for the thread sanitizer; memory of another namespace is
  // not written to.
  if (!is_writable_) std::atomic_thread_fence(std::memory_order_acquire);
  const std::uint64_t word = is_writable_
                                 ? seen.descriptor->word.fetch_or(0, std::memory_order_acq_rel)
                                 : seen.descriptor->word.load(std::memory_order_relaxed);
  if (place < kReaders) seen.descriptor->readers[place].store(0, std::memory_order_release);
  return word == seen.word.bits;
}

bool BlockShare::is_being_read(Descriptor& descriptor) const {
  for (auto& reader : descriptor.readers) {
    std::uint32_t process = reader.load(std::memory_order_seq_cst);
    if (process == 0) continue;
    if (process == own_process() || !has_ended(static_cast<pid_t>(process))) return true;
    reader.compare_exchange_strong(process, 0, std::memory_order_seq_cst);
  }
  return false;
}

// ---- entries

std::optional<Seen> BlockShare::claim(const Key& key, std::uint64_t bytes, Room room,
                                      std::uint64_t& evicted) {
  if (!is_writable_) return std::nullopt;
  auto seen = take_of_class(bytes, room, evicted);
  if (!seen) return std::nullopt;
  // Released, so that a process that sees a part of the new key sees the slot claimed.
  for (std::size_t i = 0; i < key.words.size(); ++i)
    seen->descriptor->key[i].store(key.words[i], std::memory_order_release);
  seen->descriptor->bytes.store(bytes, std::memory_order_release);
  seen->descriptor->is_used.store(1, std::memory_order_relaxed);
  seen->bytes = bytes;
  link(key.hash(), *seen);
  return seen;
}

bool BlockShare::remove(const Key& key) {
  auto seen = find(key);
  std::uint64_t evicted = 0;
  if (!seen || !is_writable_ || seen->word.state() != State::kReady || !take(*seen, evicted))
    return false;
  abandon(*seen);
  return true;
}

ShareUse BlockShare::use(ShareUse sum) const {
  ++sum.shares;
  sum.capacity += capacity();
  for (std::uint32_t section = 0; section < header_->sections; ++section) {
    const SectionGeometry now = geometry(section);
    if (now.slots == 0) continue;
    ++sum.sections;
    sum.slots += now.slots;
    for (std::uint64_t index = 0; index < now.slots; ++index) {
      const Seen seen = slot(section, now, index);
      if (seen.word.state() != State::kReady) continue;
      ++sum.entries;
      sum.bytes += seen.descriptor->bytes.load(std::memory_order_relaxed);
    }
  }
  return sum;
}

// Claims a slot for this process and evicts its entry, unless a process claims or reads it.
bool BlockShare::take(Seen& seen, std::uint64_t& evicted) const {
  Descriptor& descriptor = *seen.descriptor;
  const Word before = seen.word;
  if (before.state() == State::kClaimed && is_live(before)) return false;
  if (before.state() == State::kReady && is_being_read(descriptor)) return false;
  const Key key = key_of(descriptor);
  const Word mine = Word::of(before.generation() + 1, own_process(), State::kClaimed);
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

// A slot for so many bytes of a section, if there is one.
std::optional<Seen> BlockShare::take_in(std::optional<std::uint32_t> section, std::uint64_t bytes,
                                        std::uint64_t& evicted) const {
  if (!section) return std::nullopt;
  const SectionGeometry now = geometry(*section);
  if (now.slot_bytes < bytes) return std::nullopt;
  Section& clock = header_->section[*section];
  for (std::uint64_t turn = 0; turn < kSweeps * now.slots; ++turn) {
    const std::uint64_t index = clock.hand.fetch_add(1, std::memory_order_relaxed) % now.slots;
    Seen seen = slot(*section, now, index);
    if (seen.word.state() == State::kReady &&
        seen.descriptor->is_used.exchange(0, std::memory_order_relaxed) != 0)
      continue;  // its second chance
    if (!take(seen, evicted)) continue;
    if (clock.slot_bytes.load(std::memory_order_seq_cst) == now.slot_bytes) return seen;
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
  std::map<std::uint64_t, std::vector<std::uint32_t>> by_size;
  for (std::uint32_t section = 0; section < header_->sections; ++section)
    by_size[geometry(section).slot_bytes].push_back(section);
  const auto& [size, most] = *std::max_element(
      by_size.begin(), by_size.end(),
      [](const auto& one, const auto& other) { return one.second.size() < other.second.size(); });
  if (most.size() == 1 || size == slot_bytes) return std::nullopt;
  for (const std::uint32_t section : most)
    if (empty(section, slot_bytes, evicted)) return section;
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
    if (auto seen = take_in(section, bytes, evicted)) return seen;
  }
  if (auto seen = take_in(format_section(wanted), bytes, evicted)) return seen;
  if (room == Room::kUntouched) return std::nullopt;
  if (!is_there)
    if (auto seen = take_in(empty_section(wanted, evicted), bytes, evicted)) return seen;
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
  return take_in(chosen, bytes, evicted);
}

}  // namespace memspan::blocks
