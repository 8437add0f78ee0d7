// SPDX-License-Identifier: Apache-2.0
// Memory of this process that members of a group may map, and their memory that is mapped here.
#pragma once

#include "pgas/group/process_group.h"

namespace memspan::inline pgas {

// The place of an address in such memory. A value.
struct SharedPlace {
  int descriptor;
  std::uint64_t offset;
  std::uint64_t bytes;  // of the whole
};

// This process's own. Thread-safe.
class SharedPages {
 public:
  // Zeros, `bytes` > 0.
  Result<std::byte*> create(std::size_t bytes) MEMSPAN_EXCLUDES(mutex_);
  // False when `base` is not what create() gave.
  bool destroy(const void* base) MEMSPAN_EXCLUDES(mutex_);
  // The descriptor is good until destroy().
  std::optional<SharedPlace> find(const void* address) MEMSPAN_EXCLUDES(mutex_);

 private:
  struct Block {
    Pages pages;
    Reservation range;
  };
  Mutex mutex_;
  std::map<std::uintptr_t, Block> blocks_ MEMSPAN_GUARDED_BY(mutex_);  // by base
};

// The memory of other members that is mapped through one group. Thread-safe.
class MappedPages {
 public:
  // Collective. `mine` is nullopt when this member's address is none of its SharedPages: then all
  // get kInvalidArgument, as when sizes or offsets differ.
  Status map(ProcessGroup& group, std::optional<SharedPlace> mine, void* address, void* mapped[])
      MEMSPAN_EXCLUDES(mutex_);
  // kInvalidArgument when it is not what map() gave.
  Status unmap(const ProcessGroup& group, void* const mapped[]) MEMSPAN_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::multimap<const void*, Reservation> ranges_ MEMSPAN_GUARDED_BY(mutex_);  // by what map() gave
};

// Waits until `word` is `expected`, makes it `value` and wakes `member`, which may wait for that.
Status swap_word(ProcessGroup& group, std::atomic<std::uint32_t>& word, std::uint32_t expected,
                 std::uint32_t value, int member, Deadline deadline);

}  // namespace memspan::inline pgas
