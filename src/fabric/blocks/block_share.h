// SPDX-License-Identifier: Apache-2.0
// One share of a block cache, as a process of its host sees it. Entries are found, claimed, made
// ready and evicted in the share's memory (block_layout.h), by compare-and-swap on the slots' state
// words, without locks. A process may be killed between any two instructions. Its claims are free
// for all others once the kernel reports its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/status.h"
#include "fabric/blocks/block_layout.h"

namespace memspan::blocks {

// A value: a slot at the moment when it was seen.
struct Seen {
  std::uint32_t section = 0;
  SectionGeometry geometry = {};
  Descriptor* descriptor = nullptr;
  std::byte* data = nullptr;
  Word word = {};
  std::uint64_t bytes = 0;
};

// Which slots an entry may have: those that never had one, or also those that the clock evicts.
enum class Room { kUntouched, kAny };

struct ShareUse {
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
  void publish(const Seen& claimed);
  // Frees the slot without an entry.
  void abandon(const Seen& claimed) const;
  // False when there is no such entry, or it is in use.
  bool remove(const Key& key);

  ShareUse use() const;

 private:
  explicit BlockShare(Header* header, bool is_writable)
      : header_(header), is_writable_(is_writable) {}
  std::byte* base() const { return reinterpret_cast<std::byte*>(header_); }
  std::atomic<std::uint64_t>* cells() const {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(base() + kHeaderBytes);
  }
  std::byte* section_at(std::uint32_t section) const {
    return base() + header_->sections_at + section * header_->section_bytes;
  }
  Descriptor* descriptors_of(std::uint32_t section) const {
    return reinterpret_cast<Descriptor*>(section_at(section));
  }
  SectionGeometry geometry(std::uint32_t section) const;
  Seen slot(std::uint32_t section, const SectionGeometry& geometry, std::uint64_t index) const;
  std::uint64_t first_cell(std::uint64_t hash) const { return hash & (header_->cells - kWindow); }
  std::optional<Seen> slot_of_cell(std::uint64_t cell) const;
  bool is_stale(std::uint64_t cell, std::uint64_t at) const;
  void link(std::uint64_t hash, const Seen& seen) const;
  void unlink(std::uint64_t hash, const Seen& seen) const;
  static Key key_of(const Descriptor& descriptor);
  bool is_live(Word word) const;
  bool is_being_read(Descriptor& descriptor) const;
  bool take(Seen& seen, std::uint64_t& evicted) const;
  std::optional<Seen> take_in(std::uint32_t section, const SectionGeometry& geometry,
                              std::uint64_t& evicted) const;
  std::optional<Seen> take_of_class(std::uint64_t bytes, Room room, std::uint64_t& evicted);
  std::optional<std::uint32_t> format_section(std::uint64_t slot_bytes) const;
  std::optional<std::uint32_t> empty_section(std::uint64_t slot_bytes, std::uint64_t& evicted);
  bool empty(std::uint32_t section, std::uint64_t slot_bytes, std::uint64_t& evicted) const;

  Header* header_;
  bool is_writable_;
};

}  // namespace memspan::blocks
