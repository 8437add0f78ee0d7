// SPDX-License-Identifier: Apache-2.0
// The regions that this process exposes by messages, and the check of every access to them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/mutex.h"
#include "core/status.h"
#include "device/memory.h"
#include "transport/message/protocol.h"
#include "transport/region.h"

namespace memspan {

// Why an access is refused. A value.
struct Denial {
  Refusal refusal;
  std::string why;
};

// Memory of a region that stays until it is given back; or why there is none.
struct PinnedMemory {
  std::byte* at = nullptr;
  std::optional<Denial> denial;
  std::uint64_t rest = 0;    // bytes of the region from there on
  bool lasts = false;        // LocalRegion::lasts
  Device* device = nullptr;  // null: `at` can be loaded and stored
};

// Thread-safe.
class RegionTable {
 public:
  RegionTable();

  // kInvalidArgument: the number is taken.
  Result<RegionId> add(const LocalRegion& region);
  // Waits until nobody has the region pinned, which no thread does while it waits.
  void remove(RegionId id);

  // Checks region, generation and bounds. unpin() in the same thread when there is no
  // denial.
  PinnedMemory pin(RegionId id, std::uint64_t offset, std::uint64_t bytes);
  void unpin(RegionId id);

 private:
  struct Entry {
    std::byte* base = nullptr;
    std::uint64_t bytes = 0;
    std::uint32_t generation = 0;
    std::uint32_t pins = 0;
    bool lasts = false;
    Device* device = nullptr;
    bool is_there = false;  // the number was used; another may use it with the next generation
  };
  Mutex mutex_;
  ConditionVariable unpinned_;
  std::map<std::uint32_t, Entry> entries_ MEMSPAN_GUARDED_BY(mutex_);  // by number
  std::uint32_t next_generation_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan
