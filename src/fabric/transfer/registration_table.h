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

#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/clock.h"
#include "core/interrupt.h"
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
  static Result<RegistrationPages> create() {
    constexpr const char* kDoing = "making a registration table";
    MEMSPAN_TRY_ASSIGN(Pages pages,
                       Pages::create(table_layout::kBytes, "memspan-registration table"), kDoing);
    MEMSPAN_PASS_ASSIGN(RegistrationPages made, map(std::move(pages), kDoing));
    made.table().header.state.store(table_layout::kOpen, std::memory_order_relaxed);
    made.table().header.format.store(table_layout::kFormat, std::memory_order_release);
    return made;
  }
  // A peer's. kInvalidArgument when it is not what create() makes.
  static Result<RegistrationPages> open(Fd descriptor) {
    constexpr const char* kDoing = "opening a registration table";
    MEMSPAN_TRY_ASSIGN(Pages pages, Pages::adopt(std::move(descriptor)), kDoing);
    if (pages.bytes() < table_layout::kBytes)
      return Status(Code::kInvalidArgument,
                    fmt::format("a registration table of {} bytes instead of {}", pages.bytes(),
                                table_layout::kBytes));
    MEMSPAN_PASS_ASSIGN(RegistrationPages opened, map(std::move(pages), kDoing));
    if (mprotect(opened.place_.base(), table_layout::kCountersAt, PROT_READ) != 0)
      return Status::from_errno("protecting a registration table");
    if (opened.header().format.load(std::memory_order_acquire) != table_layout::kFormat)
      return Status(Code::kInvalidArgument, "a registration table of another format");
    return opened;
  }

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
  static Result<RegistrationPages> map(Pages pages, const char* doing) {
    MEMSPAN_TRY_ASSIGN(Reservation place, Reservation::make(table_layout::kBytes, nullptr), doing);
    MEMSPAN_TRY(place.map(0, pages, 0, table_layout::kBytes), doing);
    return RegistrationPages(std::move(pages), std::move(place));
  }
  RegistrationPages(Pages pages, Reservation place)
      : pages_(std::move(pages)), place_(std::move(place)) {}
  table_layout::Table& table() const {
    return *reinterpret_cast<table_layout::Table*>(place_.base());
  }
  Pages pages_;
  Reservation place_;
};

// kInvalidArgument for an empty range or one that goes round the end of the address space.
inline Status check_range(std::uint64_t base, std::uint64_t bytes) {
  if (base == 0) return {Code::kInvalidArgument, "invalid address, which is null"};
  if (bytes == 0) return {Code::kInvalidArgument, "invalid capacity, which is 0"};
  if (bytes <= UINT64_MAX - base) return Status::ok();
  return {
      Code::kInvalidArgument,
      fmt::format("invalid capacity, which is {}: {:#x} and that is more than an address can be",
                  bytes, base)};
}

// The owner's side. It counts the registrations of the program's memory by their beginnings, and
// has slots for allocations. One thread at a time.
class RegistrationTable {
 public:
  explicit RegistrationTable(RegistrationPages pages) : pages_(std::move(pages)) {}

  const RegistrationPages& pages() const { return pages_; }
  std::size_t room() const { return table_layout::kSlots - used_ + free_.size(); }

  // Adding the same range again is counted.
  Status add(std::uint64_t base, std::uint64_t bytes) {
    MEMSPAN_PASS(check_range(base, bytes));
    const auto [first, last] = by_base_.equal_range(base);
    for (auto it = first; it != last; ++it) {
      if (it->second.bytes != bytes || it->second.group != 0) continue;
      ++it->second.count;
      return Status::ok();
    }
    MEMSPAN_PASS(check_room(1));
    add_new({.base = base, .bytes = bytes});
    return Status::ok();
  }
  // All or none; those that touch are joined. The ranges' allocation and group do not matter.
  Status add_joined(std::span<const Range> ranges) {
    for (std::size_t i = 0; i < ranges.size(); ++i)
      MEMSPAN_TRY(check_range(ranges[i].base, ranges[i].bytes), fmt::format("piece {}", i));
    MEMSPAN_PASS(check_room(ranges.size()));
    if (++last_group_ == 0) ++last_group_;
    for (const Range& range : ranges)
      add_new({.base = range.base, .bytes = range.bytes, .group = last_group_});
    return Status::ok();
  }
  // Takes back the latest one that begins there. kNotFound: none begins there.
  Status remove(std::uint64_t base) {
    auto after = by_base_.upper_bound(base);
    if (after == by_base_.begin() || (--after)->first != base)
      return {Code::kNotFound, fmt::format("nothing is registered that begins at {:#x}", base)};
    if (--after->second.count > 0) return Status::ok();
    remove_slot(after->second.slot);
    by_base_.erase(after);
    return Status::ok();
  }
  // kInvalidArgument names a registration of the program's that it overlaps, kOutOfMemory: there is
  // no room for one more.
  Status check_apart(std::uint64_t base, std::uint64_t bytes) const {
    for (auto it = by_base_.begin(); it != by_base_.end() && it->first < base + bytes; ++it)
      if (it->first + it->second.bytes > base)
        return {Code::kInvalidArgument,
                fmt::format("{} bytes at {:#x} overlap the {} that are registered at {:#x}", bytes,
                            base, it->second.bytes, it->first)};
    return check_room(1);
  }
  // kOutOfMemory: the table has no place for so many more.
  Status check_room(std::size_t ranges) const {
    if (ranges <= room()) return Status::ok();
    return {Code::kOutOfMemory,
            fmt::format("{} registrations in addition to the {} that exist are too many; "
                        "allowed are {}",
                        ranges, table_layout::kSlots - room(), table_layout::kSlots)};
  }

  // Returns the slot; `room()` is not 0.
  std::uint32_t add_slot(const Range& range) {
    MEMSPAN_CHECK(room() > 0);
    std::uint32_t index = 0;
    if (free_.empty()) {
      index = used_++;
      pages_.table().header.slots_used.store(used_, std::memory_order_release);
    } else {
      index = free_.back();
      free_.pop_back();
    }
    // Release, each: a reader that sees one of these sees the earlier stamp of 0, or a later one,
    // when it looks again (RegistrationView::read).
    table_layout::Slot& slot = pages_.table().slots[index];
    slot.base.store(range.base, std::memory_order_release);
    slot.bytes.store(range.bytes, std::memory_order_release);
    slot.tag.store(std::uint64_t{range.allocation} << 32 | range.group, std::memory_order_release);
    slot.stamp.store(++last_stamp_, std::memory_order_release);
    note_change(index);
    return index;
  }
  void remove_slot(std::uint32_t slot) {
    MEMSPAN_CHECK(slot < used_);
    pages_.table().slots[slot].stamp.store(0, std::memory_order_release);
    note_change(slot);
    free_.push_back(slot);
  }
  // Peers find it ended from now on.
  void close() {
    pages_.table().header.state.store(table_layout::kClosed, std::memory_order_release);
  }

 private:
  struct Registration {
    std::uint64_t bytes = 0;
    std::uint32_t group = 0;
    std::uint32_t slot = 0;
    std::uint64_t count = 1;
  };
  void add_new(const Range& range) {
    by_base_.emplace(range.base, Registration{range.bytes, range.group, add_slot(range)});
  }
  void note_change(std::uint32_t slot) {
    auto& version = pages_.table().header.version;
    const std::uint64_t number = version.load(std::memory_order_relaxed);
    pages_.table().changes[number % table_layout::kChanges].store(slot, std::memory_order_release);
    version.store(number + 1, std::memory_order_release);
  }

  RegistrationPages pages_;
  std::vector<std::uint32_t> free_;
  std::uint32_t used_ = 0;
  std::uint64_t last_stamp_ = 0;
  std::multimap<std::uint64_t, Registration> by_base_;  // the last of a base was given last
  std::uint32_t last_group_ = 0;
};

// ---- counters: the words that peers add to

// kInvalidArgument when there is no such counter.
inline Status check_counter(std::uint32_t counter) {
  if (counter < table_layout::kCounters) return Status::ok();
  return {Code::kInvalidArgument, fmt::format("invalid counter, which is {}: allowed are 0 to {}",
                                              counter, table_layout::kCounters - 1)};
}

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
inline Status wait_for_counter(table_layout::Counters& counters, std::uint32_t counter,
                               std::uint64_t value, const std::atomic<bool>& is_over,
                               Deadline deadline) {
  const auto& word = counters.values[counter];
  std::uint64_t seen = 0;
  const bool is_ended = await_event(counters.added, deadline, [&] {
    seen = word.load(std::memory_order_seq_cst);
    return seen >= value || is_over.load(std::memory_order_seq_cst);
  });
  if (seen >= value) return Status::ok();
  if (is_ended) return {Code::kUnavailable, "the endpoint is being destroyed"};
  return end_of_wait(fmt::format("timeout: counter {} is {} and not yet {}", counter, seen, value));
}

}  // namespace memspan::transfer
