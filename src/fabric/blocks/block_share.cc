// SPDX-License-Identifier: Apache-2.0
#include "fabric/blocks/block_share.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "node/process.h"

namespace memspan::blocks {
namespace {

constexpr std::uint64_t kUsualSection = std::uint64_t{64} << 20;
constexpr std::uint64_t kLeastSection = std::uint64_t{512} << 10;

std::uint32_t own_process() {
  return static_cast<std::uint32_t>(getpid());
}

}  // namespace

// ---- making and opening

Status BlockShare::format(void* base, std::uint64_t bytes, std::uint32_t sections) {
  if (bytes < kLeastShare)
    return {Code::kInvalidArgument,
            fmt::format("a share has {} bytes, allowed are {} and more", bytes, kLeastShare)};
  const std::uint64_t cells =
      std::bit_ceil(std::max<std::uint64_t>(kWindow, 2 * bytes / kLeastSlot));
  const std::uint64_t sections_at =
      (kHeaderBytes + cells * sizeof(std::uint64_t) + kSlotAlignment - 1) / kSlotAlignment *
      kSlotAlignment;
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

SectionGeometry BlockShare::geometry(std::uint32_t section) const {
  return geometry_of(header_->section_bytes,
                     header_->section[section].slot_bytes.load(std::memory_order_acquire));
}

Seen BlockShare::slot(std::uint32_t section, const SectionGeometry& geometry,
                      std::uint64_t index) const {
  Descriptor* const descriptor = descriptors_of(section) + index;
  return {.section = section,
          .geometry = geometry,
          .descriptor = descriptor,
          .data = section_at(section) + geometry.slots_at + index * geometry.slot_bytes,
          .word = {descriptor->word.load(std::memory_order_acquire)}};
}

std::optional<Seen> BlockShare::slot_of_cell(std::uint64_t cell) const {
  const auto section = static_cast<std::uint32_t>((cell & 0xffff'ffff) >> kIndexBits);
  const std::uint64_t index = cell & ((std::uint64_t{1} << kIndexBits) - 1);
  if (section >= header_->sections) return std::nullopt;
  const SectionGeometry now = geometry(section);
  if (index >= now.slots) return std::nullopt;
  return slot(section, now, index);
}

// Acquire, so that the word is looked at again after the key.
Key BlockShare::key_of(const Descriptor& descriptor) {
  Key key;
  for (std::size_t i = 0; i < key.words.size(); ++i)
    key.words[i] = descriptor.key[i].load(std::memory_order_acquire);
  return key;
}

bool BlockShare::is_live(Word word) const {
  const std::uint32_t process = word.process();
  return !is_writable_ || process == own_process() || !has_ended(static_cast<pid_t>(process));
}

std::optional<Seen> BlockShare::find(const Key& key) const {
  const std::uint64_t hash = key.hash();
  const std::uint64_t fingerprint = cell_of(hash, 0, 0) >> 32;
  std::atomic<std::uint64_t>* const window = cells() + first_cell(hash);
  for (std::uint32_t i = 0; i < kWindow; ++i) {
    const std::uint64_t cell = window[i].load(std::memory_order_acquire);  // pairs with link()
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

// Whether a cell of the table names no entry that could be found by it.
bool BlockShare::is_stale(std::uint64_t cell, std::uint64_t at) const {
  const auto seen = slot_of_cell(cell);
  if (!seen || seen->word.state() == State::kFree) return true;
  const std::uint64_t hash = key_of(*seen->descriptor).hash();
  return first_cell(hash) != at || cell_of(hash, 0, 0) >> 32 != cell >> 32;
}

void BlockShare::link(std::uint64_t hash, const Seen& seen) const {
  const auto index = static_cast<std::uint64_t>(seen.descriptor - descriptors_of(seen.section));
  const std::uint64_t made = cell_of(hash, seen.section, index);
  const std::uint64_t first = first_cell(hash);
  std::atomic<std::uint64_t>* const window = cells() + first;
  for (std::uint32_t i = 0; i < kWindow; ++i) {
    std::uint64_t cell = window[i].load(std::memory_order_acquire);
    if ((cell == 0 || is_stale(cell, first)) &&
        window[i].compare_exchange_strong(cell, made, std::memory_order_seq_cst))
      return;
  }
  // Full: one of them is no longer found, and the clock will reach it.
  window[(hash >> 27) % kWindow].store(made, std::memory_order_seq_cst);
}

void BlockShare::unlink(std::uint64_t hash, const Seen& seen) const {
  const auto index = static_cast<std::uint64_t>(seen.descriptor - descriptors_of(seen.section));
  const std::uint64_t gone = cell_of(hash, seen.section, index);
  std::atomic<std::uint64_t>* const window = cells() + first_cell(hash);
  for (std::uint32_t i = 0; i < kWindow; ++i) {
    std::uint64_t cell = gone;
    window[i].compare_exchange_strong(cell, 0, std::memory_order_seq_cst);
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

void BlockShare::publish(const Seen& claimed) {
  const Word ready = Word::of(claimed.word.generation() + 1, 0, State::kReady);
  claimed.descriptor->word.store(ready.bits, std::memory_order_release);  // pairs with find()
}

void BlockShare::abandon(const Seen& claimed) const {
  const Word free = Word::of(claimed.word.generation() + 1, 0, State::kFree);
  claimed.descriptor->word.store(free.bits, std::memory_order_seq_cst);
}

bool BlockShare::remove(const Key& key) {
  auto seen = find(key);
  std::uint64_t evicted = 0;
  if (!seen || !is_writable_ || seen->word.state() != State::kReady || !take(*seen, evicted))
    return false;
  abandon(*seen);
  return true;
}

ShareUse BlockShare::use() const {
  ShareUse use{.capacity = capacity()};
  for (std::uint32_t section = 0; section < header_->sections; ++section) {
    const SectionGeometry now = geometry(section);
    if (now.slots == 0) continue;
    ++use.sections;
    use.slots += now.slots;
    for (std::uint64_t index = 0; index < now.slots; ++index) {
      const Seen seen = slot(section, now, index);
      if (seen.word.state() != State::kReady) continue;
      ++use.entries;
      use.bytes += seen.descriptor->bytes.load(std::memory_order_relaxed);
    }
  }
  return use;
}

}  // namespace memspan::blocks
