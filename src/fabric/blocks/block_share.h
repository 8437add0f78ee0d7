// SPDX-License-Identifier: Apache-2.0
// One share of a block cache, as a process of its host sees it. Entries are found, claimed, made
// ready and evicted in the share's memory, by compare-and-swap on the slots' state
// words, without locks. A process may be killed between any two instructions. Its claims are free
// for all others once the kernel reports its end.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "core/pages.h"

namespace memspan::blocks {

// The layout of a share of a block cache (docs/design/0022-kv-pool.md) in shared memory:
//
//   header | table: cells of 8 bytes | section 0 | section 1 | ...
//   section: descriptors of 128 bytes | slots of one size
//
// Zeros are an empty share, except for the header's first fields. All that changes is atomic.

inline constexpr std::uint64_t kMagic = 0x31306b6c62736d31;  // of this layout
inline constexpr std::uint32_t kMostSections = 32;
inline constexpr std::uint64_t kLeastSlot = 16384;  // bytes
inline constexpr std::uint64_t kSlotAlignment = 4096;
inline constexpr std::uint32_t kWindow = 32;  // cells that may hold a key
inline constexpr std::uint32_t kReaders = 8;
inline constexpr std::uint32_t kIndexBits = 27;  // of a slot in its section

// An entry's key: a hash of its content, made by the caller. A value.
struct Key {
  std::array<std::uint64_t, 4> words = {};
  bool operator==(const Key& other) const { return words == other.words; }
  // Many keys may have equal bits anywhere.
  std::uint64_t hash() const {
    std::uint64_t mixed = 0;
    for (const std::uint64_t word : words) {
      mixed = (mixed ^ word) * 0x9e37'79b9'7f4a'7c15;
      mixed ^= mixed >> 29;
    }
    mixed *= 0xbf58'476d'1ce4'e5b9;
    return mixed ^ (mixed >> 32);
  }
};

enum class State : std::uint8_t { kFree = 0, kClaimed = 1, kReady = 2 };

// The state word of a slot: generation | process | state. A value.
struct Word {
  std::uint64_t bits = 0;
  static Word of(std::uint64_t generation, std::uint32_t process, State state) {
    return {generation << 24 | std::uint64_t{process} << 2 | static_cast<std::uint64_t>(state)};
  }
  State state() const { return static_cast<State>(bits & 3); }
  // The process that claimed it; 22 bits hold any process number of Linux.
  std::uint32_t process() const { return static_cast<std::uint32_t>(bits >> 2 & 0x3f'ffff); }
  std::uint64_t generation() const { return bits >> 24; }
};

struct alignas(128) Descriptor {
  std::atomic<std::uint64_t> word;
  std::array<std::atomic<std::uint64_t>, 4> key;
  std::atomic<std::uint64_t> bytes;                          // of the entry
  std::atomic<std::uint32_t> is_used;                        // since the clock came by
  std::array<std::atomic<std::uint32_t>, kReaders> readers;  // process numbers, 0: free
};
static_assert(sizeof(Descriptor) == 128 && std::atomic<std::uint64_t>::is_always_lock_free);
// Acquire, so that the word is looked at again after the key.
inline Key key_of(const Descriptor& descriptor) {
  Key key;
  for (std::size_t i = 0; i < key.words.size(); ++i)
    key.words[i] = descriptor.key[i].load(std::memory_order_acquire);
  return key;
}

struct alignas(64) Section {
  std::atomic<std::uint64_t> slot_bytes;  // 0: no entry has come yet
  std::atomic<std::uint64_t> hand;        // turns of the clock; below the slots: some are untouched
};

struct Header {
  std::atomic<std::uint64_t> magic;  // written last
  std::uint64_t bytes;               // of the share
  std::int64_t pid_namespace;        // of its owner; 0: not known
  std::uint64_t cells;               // a power of 2
  std::uint64_t sections;
  std::uint64_t section_bytes;
  std::uint64_t sections_at;  // from the header
  std::array<Section, kMostSections> section;
};
inline constexpr std::uint64_t kHeaderBytes = 4096;
static_assert(sizeof(Header) <= kHeaderBytes && std::is_standard_layout_v<Header>);

// The places of slots in a section. A value. The space for descriptors is that for the smallest
// slots, so that they keep their places whatever size the section has. A process that still uses an
// earlier size touches descriptors, and never the bytes of an entry.
struct SectionGeometry {
  std::uint64_t slot_bytes = 0;
  std::uint64_t slots = 0;
  std::uint64_t slots_at = 0;  // from the section's beginning
};
// No slots when the section is too small for one.
constexpr SectionGeometry geometry_of(std::uint64_t section_bytes, std::uint64_t slot_bytes) {
  const std::uint64_t slots_at =
      align_up(section_bytes / kLeastSlot * sizeof(Descriptor), kSlotAlignment);
  if (slot_bytes < kLeastSlot || slots_at >= section_bytes) return {};
  return {slot_bytes, (section_bytes - slots_at) / slot_bytes, slots_at};
}

// The slot size for an entry: eight sizes for each doubling, so that at most an eighth is unused.
constexpr std::uint64_t class_of(std::uint64_t bytes) {
  if (bytes <= kLeastSlot) return kLeastSlot;
  std::uint64_t step = kSlotAlignment;
  while (bytes > step * 16) step *= 2;
  return align_up(bytes, step);
}

// A cell: fingerprint | place; never 0. The place of a slot: section | index in it.
constexpr std::uint64_t cell_of(std::uint64_t hash, std::uint32_t place) {
  return (hash | std::uint64_t{1} << 32) >> 32 << 32 | place;
}
constexpr std::uint32_t section_of_cell(std::uint64_t cell) {
  return static_cast<std::uint32_t>(cell) >> kIndexBits;
}
constexpr std::uint64_t index_of_cell(std::uint64_t cell) {
  return cell & ((std::uint64_t{1} << kIndexBits) - 1);
}

// A value: a slot at the moment when it was seen.
struct Seen {
  std::uint32_t place = 0;
  SectionGeometry geometry = {};
  Descriptor* descriptor = nullptr;
  std::byte* data = nullptr;
  Word word = {};
  std::uint64_t bytes = 0;
};

// Which slots an entry may have: those that never had one, or also those that the clock evicts.
enum class Room { kUntouched, kAny };

struct ShareUse {
  std::uint64_t shares = 0;
  std::uint64_t sections = 0;  // that have a size
  std::uint64_t slots = 0;     // in them
  std::uint64_t entries = 0;   // ready
  std::uint64_t bytes = 0;     // of these
  std::uint64_t capacity = 0;  // bytes of all sections
};

// A value; borrows the memory, which stays mapped while it is used. Thread-safe.
class BlockShare {
 public:
  // Makes a share of `bytes` of zeros; `sections` 0: by its size. kInvalidArgument: less than
  // kLeastShare, more sections than kMostSections, or sections of less than 512 KiB.
  static Status format(void* base, std::uint64_t bytes, std::uint32_t sections);
  // Empty if there is no share (yet).
  static std::optional<BlockShare> open(void* base, std::uint64_t bytes);
  static constexpr std::uint64_t kLeastShare = std::uint64_t{1} << 20;

  // The bytes of all sections, for choosing among shares.
  std::uint64_t capacity() const { return header_->sections * header_->section_bytes; }
  // Whether this process is in the owner's pid namespace. Only then it may write to the share.
  bool is_writable() const { return is_writable_; }

  // An entry that is ready, or that a live process is putting (its state says which).
  std::optional<Seen> find(const Key& key) const;
  // Marks it as used for the clock.
  static void touch(const Seen& seen) {
    seen.descriptor->is_used.store(1, std::memory_order_relaxed);
  }

  // Enters this process as a reader of a ready entry, which is then not evicted. Empty: the entry
  // has been evicted. kReaders: no place was free or the share is not writable; the read has no
  // place.
  std::optional<std::uint32_t> begin_read(const Seen& seen) const;
  // Whether the entry is still the one that find() found.
  bool end_read(const Seen& seen, std::uint32_t place) const;

  // A slot for an entry, claimed by this process, with key and size written. With kAny it may be an
  // evicted slot, in a section taken from another class, or of a larger class. Empty if there is no
  // slot. `evicted` counts.
  std::optional<Seen> claim(const Key& key, std::uint64_t bytes, Room room, std::uint64_t& evicted);
  // Makes the entry ready. Its bytes must be in the slot.
  void publish(const Seen& claimed) {
    const Word ready = Word::of(claimed.word.generation() + 1, 0, State::kReady);
    claimed.descriptor->word.store(ready.bits, std::memory_order_release);  // pairs with find()
  }
  // Frees the slot without an entry.
  void abandon(const Seen& claimed) const {
    const Word free = Word::of(claimed.word.generation() + 1, 0, State::kFree);
    claimed.descriptor->word.store(free.bits, std::memory_order_seq_cst);
  }
  // False when there is no such entry, or it is in use.
  bool remove(const Key& key);

  // Adds that of this share to `sum`.
  ShareUse use(ShareUse sum = {}) const;

 private:
  explicit BlockShare(Header* header, bool is_writable)
      : header_(header), is_writable_(is_writable) {}
  std::byte* base() const { return reinterpret_cast<std::byte*>(header_); }
  // The cells that may hold a key of that hash.
  std::span<std::atomic<std::uint64_t>, kWindow> window_of(std::uint64_t hash) const {
    auto* const cells = reinterpret_cast<std::atomic<std::uint64_t>*>(base() + kHeaderBytes);
    return std::span<std::atomic<std::uint64_t>, kWindow>(cells + first_cell(hash), kWindow);
  }
  std::byte* section_at(std::uint32_t section) const {
    return base() + header_->sections_at + section * header_->section_bytes;
  }
  SectionGeometry geometry(std::uint32_t section) const {
    return geometry_of(header_->section_bytes,
                       header_->section[section].slot_bytes.load(std::memory_order_acquire));
  }
  Seen slot(std::uint32_t section, const SectionGeometry& geometry, std::uint64_t index) const;
  std::uint64_t first_cell(std::uint64_t hash) const { return hash & (header_->cells - kWindow); }
  std::optional<Seen> slot_of_cell(std::uint64_t cell) const;
  // Whether a cell of the table names no entry that could be found by it.
  bool is_stale(std::uint64_t cell, std::uint64_t at) const {
    const auto seen = slot_of_cell(cell);
    if (!seen || seen->word.state() == State::kFree) return true;
    const std::uint64_t hash = key_of(*seen->descriptor).hash();
    return first_cell(hash) != at || cell_of(hash, 0) >> 32 != cell >> 32;
  }
  void link(std::uint64_t hash, const Seen& seen) const;
  void unlink(std::uint64_t hash, const Seen& seen) const;
  bool is_live(Word word) const;
  bool is_being_read(Descriptor& descriptor) const;
  bool take(Seen& seen, std::uint64_t& evicted) const;
  std::optional<Seen> take_in(std::optional<std::uint32_t> section, std::uint64_t bytes,
                              std::uint64_t& evicted) const;
  std::optional<Seen> take_of_class(std::uint64_t bytes, Room room, std::uint64_t& evicted);
  std::optional<std::uint32_t> format_section(std::uint64_t slot_bytes) const;
  std::optional<std::uint32_t> empty_section(std::uint64_t slot_bytes, std::uint64_t& evicted);
  bool empty(std::uint32_t section, std::uint64_t slot_bytes, std::uint64_t& evicted) const;

  Header* header_;
  bool is_writable_;
};

}  // namespace memspan::blocks
