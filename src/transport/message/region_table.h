// SPDX-License-Identifier: Apache-2.0
// The regions that this process exposes by messages, and the check of every access to them.
#pragma once

#include <map>

#include "device/memory.h"
#include "transport/link.h"
#include "transport/message/protocol.h"

namespace memspan {

// Why an access is refused. A value.
struct Denial {
  Refusal refusal;
  std::string why;
};

class RegionTable;

struct Unpin {
  RegionId id;
  void operator()(RegionTable* table) const;
};

// Memory of a region that stays while this lives, or why access is denied. Move-only.
struct PinnedMemory {
  std::byte* at = nullptr;
  std::optional<Denial> denial;
  std::uint64_t rest = 0;                        // bytes of the region from `at` on
  bool lasts = false;                            // LocalRegion::lasts
  Device* device = nullptr;                      // null: `at` can be loaded and stored
  std::unique_ptr<RegionTable, Unpin> pin = {};  // null: access is denied
};

// Thread-safe.
class RegionTable {
 public:
  RegionTable();

  // kInvalidArgument: the number is taken.
  Result<RegionId> add(const LocalRegion& region);
  // Waits until no thread has the region pinned; no thread waits while it pins one.
  void remove(RegionId id);

  // Checks region, generation and bounds. The same thread must destroy the result.
  PinnedMemory pin(RegionId id, std::uint64_t offset, std::uint64_t bytes);

 private:
  friend struct Unpin;
  struct Entry {
    LocalRegion region;
    std::uint32_t generation = 0;
    Device* device = nullptr;
    std::uint32_t pins = 0;
    bool is_there = false;  // false: the number is free for the next generation
  };
  Mutex mutex_;
  ConditionVariable unpinned_;
  std::map<std::uint32_t, Entry> entries_ MEMSPAN_GUARDED_BY(mutex_);  // by number
  std::uint32_t next_generation_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan
