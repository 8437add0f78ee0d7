// SPDX-License-Identifier: Apache-2.0
// A cache of blocks that is spread over the memory of several processes, and that each of them can
// read whole. A member keeps what it puts in its own part and is the only one that writes there; it
// looks for a block in its own part first, then in the others'. There is no server and no lock, so
// that nobody waits for a member that is slow, stuck or dead: what it kept is not found any more.
//
//   part of a member | state | entries: sets of 8 | referenced: a byte each | blocks |
//
// A hash belongs to one set. Entry i describes block i. Its version is odd while its owner changes
// the two; a reader copies the entry, the block, and the version again, and takes the block only
// when the versions are the same and even and the checksum, which covers the hash, is right. A
// member makes room in a set with a clock: the first block that nobody read since the hand last
// came by.
#pragma once

#include <smem/host/smem_bm.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kv_pool {

struct Shape {
  std::uint32_t members;
  std::size_t block_bytes;  // a multiple of 64
  std::size_t blocks;       // of each member, a multiple of kWays
};

constexpr std::size_t kWays = 8;

// One thread at a time. What the library refuses ends the program with its sentence, but for other
// members' absence.
class KvPool {
 public:
  // Joins as member `rank` and waits for the others, for up to 60 s.
  KvPool(const char* store_url, const Shape& shape, std::uint32_t rank);
  ~KvPool();
  KvPool(const KvPool&) = delete;
  KvPool& operator=(const KvPool&) = delete;

  // Keeps a copy of the block under its hash.
  void put(std::uint64_t hash, const void* block);
  // Copies the block to `block` and returns whose memory it was in; none when nobody has it. Then
  // `block` may have changed.
  std::optional<std::uint32_t> get(std::uint64_t hash, void* block);

  // Until every other member finished too, or is gone: for up to 60 s.
  void finish();
  // Whether that member's part can be read.
  bool is_there(std::uint32_t member);

  struct Counts {
    std::uint64_t evicted = 0;  // own blocks that made room
    std::uint64_t changed = 0;  // blocks that changed while they were copied
  };
  const Counts& counts() const { return counts_; }

 private:
  enum State : std::uint64_t { kFinished = 1 };
  struct Entry {
    std::atomic<std::uint64_t> version;  // 0: no block yet
    std::uint64_t hash;
    std::uint64_t checksum;
    std::uint64_t unused;
  };
  // As a reader has it, in its own memory.
  struct EntryCopy {
    std::uint64_t version, hash, checksum, unused;
  };
  // The pieces of one member's part.
  struct Part {
    std::atomic<std::uint64_t>* state;
    Entry* entries;
    std::atomic<std::uint8_t>* referenced;
    std::byte* blocks;
  };

  Part part(std::uint32_t member) const;
  std::size_t part_bytes() const;
  std::size_t set_of(std::uint64_t hash) const { return hash % (shape_.blocks / kWays) * kWays; }
  std::size_t make_room(std::size_t set);
  bool fetch(std::uint32_t member, std::uint64_t hash, void* block);
  bool copy(const void* from, void* to, std::size_t bytes);

  const Shape shape_;
  const std::uint32_t rank_;
  smem_bm_t pool_ = nullptr;
  Part mine_ = {};
  std::vector<std::size_t> hands_;  // of each set, the way that is looked at next
  Counts counts_;
};

}  // namespace kv_pool
