// SPDX-License-Identifier: Apache-2.0
// The regions that this process exposes by messages, and the check of every access to them.
#pragma once

#include <fmt/format.h>

#include <map>

#include "core/random.h"
#include "device/choice.h"
#include "transport/link.h"
#include "transport/message/protocol.h"

namespace memspan::inline transport {

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
  // Random, so that handles of an earlier process with this number are also stale.
  RegionTable() : next_generation_(static_cast<std::uint32_t>(random_number())) {}

  // kInvalidArgument: the number is taken.
  Result<RegionId> add(const LocalRegion& region) {
    Device* device = nullptr;
    if (region.kind == MemoryKind::kDevice) {
      MEMSPAN_TRY_ASSIGN(device, chosen_device(), "exposing memory of a device");
    }
    MutexLock lock(mutex_);
    std::uint32_t number = region.number;
    if (number == 0) number = entries_.empty() ? 1 : entries_.rbegin()->first + 1;
    Entry& entry = entries_[number];
    if (entry.is_there)
      return Status(Code::kInvalidArgument, fmt::format("region {} is exposed already", number));
    if (++next_generation_ == 0) ++next_generation_;
    entry = {region, next_generation_, device, 0, true};
    return RegionId{number, next_generation_};
  }

  // Waits until no thread has the region pinned; no thread waits while it pins one.
  void remove(RegionId id) {
    MutexLock lock(mutex_);
    Entry& entry = entries_[id.number];
    entry.is_there = false;
    while (entry.pins != 0) unpinned_.wait_until(mutex_, Deadline::never());
  }

  // Checks region, generation and bounds. The same thread must destroy the result.
  PinnedMemory pin(RegionId id, std::uint64_t offset, std::uint64_t bytes) {
    MutexLock lock(mutex_);
    const auto found = entries_.find(id.number);
    if (found == entries_.end())
      return {nullptr, Denial{Refusal::kRegion, fmt::format("there is no region {}", id.number)}};
    Entry& entry = found->second;
    const LocalRegion& region = entry.region;
    if (!entry.is_there || entry.generation != id.generation)
      return {nullptr,
              Denial{Refusal::kGeneration,
                     fmt::format("region {} is not the one any more that it was", id.number)}};
    if (offset > region.bytes || bytes > region.bytes - offset)
      return {nullptr, Denial{Refusal::kBounds,
                              fmt::format("{} bytes at offset {} leave region {} of {} bytes",
                                          bytes, offset, id.number, region.bytes)}};
    ++entry.pins;
    begin_access_for_peer();
    return {region.base + offset, std::nullopt, region.bytes - offset,
            region.lasts,         entry.device, {this, Unpin{id}}};
  }

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

inline void Unpin::operator()(RegionTable* table) const {
  end_access_for_peer();
  MutexLock lock(table->mutex_);
  RegionTable::Entry& entry = table->entries_[id.number];
  if (--entry.pins == 0 && !entry.is_there) table->unpinned_.notify_all();
}

}  // namespace memspan::inline transport
