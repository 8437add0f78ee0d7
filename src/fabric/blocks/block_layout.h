// SPDX-License-Identifier: Apache-2.0
// The layout of a share of a block cache (docs/design/0022-kv-pool.md) in shared memory:
//
//   header | table: cells of 8 bytes | section 0 | section 1 | ...
//   section: descriptors of 128 bytes | slots of one size
//
// Zeros are an empty share, except for the header's first fields. All that changes is atomic.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace memspan::blocks {

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
constexpr std::uint64_t descriptor_bytes(std::uint64_t section_bytes) {
  const std::uint64_t bytes = section_bytes / kLeastSlot * sizeof(Descriptor);
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}
// No slots when the section is too small for one.
constexpr SectionGeometry geometry_of(std::uint64_t section_bytes, std::uint64_t slot_bytes) {
  const std::uint64_t slots_at = descriptor_bytes(section_bytes);
  if (slot_bytes < kLeastSlot || slots_at >= section_bytes) return {};
  return {slot_bytes, (section_bytes - slots_at) / slot_bytes, slots_at};
}

// The slot size for an entry: eight sizes for each doubling, so that at most an eighth is unused.
constexpr std::uint64_t class_of(std::uint64_t bytes) {
  if (bytes <= kLeastSlot) return kLeastSlot;
  std::uint64_t step = kSlotAlignment;
  while (bytes > step * 16) step *= 2;
  return (bytes + step - 1) / step * step;
}

// A cell: fingerprint | section | index in it; never 0.
inline std::uint64_t cell_of(std::uint64_t hash, std::uint32_t section, std::uint64_t index) {
  return (hash | std::uint64_t{1} << 32) >> 32 << 32 | std::uint64_t{section} << kIndexBits | index;
}

}  // namespace memspan::blocks
