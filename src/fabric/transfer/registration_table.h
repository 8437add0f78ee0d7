// SPDX-License-Identifier: Apache-2.0
// A list of the memory that an endpoint lets its peers reach, in pages that they read. All peers
// see a registration as soon as it is written, without a message.
//
//   page 0        header: state, version = number of finished changes
//   changes       the slots of the last changes, by the change's number
//   slots         stamp, base, bytes, tag   stamp 0: free; else a number never used before
//   counters      words that peers add to, and a bell for the threads that wait for them
//
// Peers map everything but the counters for reading only. No reader can delay the writer, and a
// writer that stopped in the middle delays no reader. A slot's stamp shows whether the values read
// belong together, and a change counts once the version includes it. The pages are sparse.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/pages.h"
#include "core/status.h"
#include "device/reservation.h"
#include "node/event_count.h"

namespace memspan::transfer {

// A registration. A value. `allocation` 0: memory of the program; else the library's, by number.
// Those of one `group` other than 0 are joined where they touch.
struct Range {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  std::uint32_t allocation = 0;
  std::uint32_t group = 0;
  std::uint64_t end() const { return base + bytes; }
  bool operator==(const Range&) const = default;
};

namespace table_layout {

inline constexpr std::uint64_t kFormat = 0x6d656d7370616e01;  // "memspan", 1
inline constexpr std::uint32_t kSlots = 1u << 21;
inline constexpr std::uint32_t kChanges = 4096;
inline constexpr std::uint32_t kCounters = 1024;

inline constexpr std::uint64_t kOpen = 1;  // states
inline constexpr std::uint64_t kClosed = 2;

struct Header {
  std::atomic<std::uint64_t> format;
  std::atomic<std::uint64_t> state;
  std::atomic<std::uint64_t> version;
  std::atomic<std::uint64_t> slots_used;  // those after it were never used
};
struct Slot {
  std::atomic<std::uint64_t> stamp;
  std::atomic<std::uint64_t> base;
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::uint64_t> tag;  // allocation << 32 | group
};
struct Counters {
  std::atomic<std::uint64_t> values[kCounters];
  EventCount added;  // notified by the process that adds
};
using Change = std::atomic<std::uint32_t>;  // a slot

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(Slot) == 32);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(Change) == 4);

// Each part begins where the largest pages that we know do.
inline constexpr std::size_t kPart = std::size_t{64} << 10;
struct Table {
  Header header;
  std::byte after_header[kPart - sizeof(Header)];
  Change changes[kChanges];
  std::byte after_changes[kPart - kChanges * sizeof(Change)];
  Slot slots[kSlots];
  Counters counters;
  std::byte after_counters[kPart - sizeof(Counters)];
};
inline constexpr std::size_t kCountersAt = offsetof(Table, counters);
inline constexpr std::size_t kBytes = sizeof(Table);
static_assert(offsetof(Table, changes) == kPart && offsetof(Table, slots) == 2 * kPart &&
              kCountersAt == 2 * kPart + kSlots * sizeof(Slot) && kBytes == kCountersAt + kPart);

}  // namespace table_layout

// The memory of a registration table, mapped. Its contents are the owner's word: peers check
// everything that they read. Move-only value.
class RegistrationPages {
 public:
  static Result<RegistrationPages> create();
  // A peer's. kInvalidArgument when it is not what create() makes.
  static Result<RegistrationPages> open(Fd descriptor);

  const table_layout::Header& header() const { return table().header; }
  const table_layout::Change& change(std::uint64_t number) const {
    return table().changes[number % table_layout::kChanges];
  }
  const table_layout::Slot& slot(std::uint32_t index) const { return table().slots[index]; }
  table_layout::Counters& counters() const { return table().counters; }
  // For handing over: the caller closes it.
  Result<Fd> duplicate() const { return pages_.duplicate(); }

 private:
  friend class RegistrationTable;
  static Result<RegistrationPages> map(Pages pages, const char* doing);
  RegistrationPages(Pages pages, Reservation place)
      : pages_(std::move(pages)), place_(std::move(place)) {}
  table_layout::Table& table() const {
    return *reinterpret_cast<table_layout::Table*>(place_.base());
  }
  Pages pages_;
  Reservation place_;
};

// The owner's side. One thread at a time.
class RegistrationTable {
 public:
  explicit RegistrationTable(RegistrationPages pages) : pages_(std::move(pages)) {}

  const RegistrationPages& pages() const { return pages_; }
  std::size_t room() const { return table_layout::kSlots - used_ + free_.size(); }
  // Returns the slot; `room()` is not 0.
  std::uint32_t add(const Range& range);
  void remove(std::uint32_t slot);
  // Peers find it ended from now on.
  void close();

 private:
  void note_change(std::uint32_t slot);

  RegistrationPages pages_;
  std::vector<std::uint32_t> free_;
  std::uint32_t used_ = 0;
  std::uint64_t last_stamp_ = 0;
};

// ---- counters: the words that peers add to

// kInvalidArgument when there is no such counter.
Status check_counter(std::uint32_t counter);

// A process that sees the sum sees all earlier moves. For any process that has the table.
inline void add_to_counter(table_layout::Counters& counters, std::uint32_t counter,
                           std::uint64_t value) {
  counters.values[counter].fetch_add(value, std::memory_order_seq_cst);
  notify(counters.added);
}
inline std::uint64_t read_counter(const table_layout::Counters& counters, std::uint32_t counter) {
  return counters.values[counter].load(std::memory_order_acquire);
}
// Waits until the counter is `value` or more. kTimeout reports the counter. kUnavailable: a thread
// set `is_over` and notified `added`.
Status wait_for_counter(table_layout::Counters& counters, std::uint32_t counter,
                        std::uint64_t value, const std::atomic<bool>& is_over, Deadline deadline);

// A peer's registration table as this process has read it. The registrations are sorted, so that a
// few comparisons find a piece. The contents of the table are not trusted, only bounded.
//
//   base   [ 100, 200, 250 ]     where each range begins, in order
//   reach  [ 150, 400, 400 ]     the furthest end of all ranges up to here
//
// A piece is in one range exactly when the furthest end of those that begin before it is at or
// after its own. Registered allocations never overlap and are kept apart. The pages
// outlive it. One thread at a time.
class RegistrationView {
 public:
  explicit RegistrationView(const RegistrationPages& pages) : pages_(pages) {}

  // Reads what has changed; nearly free when nothing has. True when registered allocations came or
  // went.
  bool refresh();

  // Whether [address, address + bytes) is in one registration, or in joined ones.
  bool covers(std::uint64_t address, std::uint64_t bytes);
  // The extent around it: a range, or all joined ones that touch. Empty: it is not registered.
  struct Extent {
    std::uint64_t base = 0;
    std::uint64_t end = 0;
    bool is_joined = false;  // of several ranges
  };
  std::optional<Extent> extent_of(std::uint64_t address, std::uint64_t bytes);
  // The registered allocation that contains all of it; null if none does.
  const Range* allocation_of(std::uint64_t address, std::uint64_t bytes);
  bool has_allocations() const { return !allocations_.empty(); }
  bool has_allocation(std::uint32_t number) const {
    return std::ranges::find(allocations_, number, &Range::allocation) != allocations_.end();
  }
  // The nearest registrations around an address, for messages.
  std::string describe(std::uint64_t address) const;

 private:
  struct Known {  // of a slot
    std::uint64_t stamp = 0;
    Range range;
  };
  struct Entry {  // of a range; `reach`: the furthest end of all up to it
    std::uint64_t base = 0;
    std::uint64_t reach = 0;
    std::uint32_t slot = 0;
  };

  Known read(std::uint32_t slot) const;
  const Range& range_of(const Entry& entry) const { return known_[entry.slot].range; }
  void read_all();
  void take(std::uint32_t slot);
  void insert(std::uint32_t slot, const Range& range);
  void erase(std::uint32_t slot, const Range& range);
  void extend_reach(std::size_t from);
  bool joined_covers(std::uint64_t address, std::uint64_t end, std::size_t before);

  const RegistrationPages& pages_;
  std::uint64_t seen_ = 0;  // changes
  bool has_read_ = false;
  bool allocations_changed_ = false;
  std::vector<Known> known_;        // by slot
  std::vector<Entry> entries_;      // by base
  std::vector<Range> allocations_;  // by base
  std::size_t joined_count_ = 0;    // ranges that have a group
  std::size_t hint_ = 0;
  std::size_t allocation_hint_ = 0;
  Extent joined_;  // covered by joined ranges
};

}  // namespace memspan::transfer
