// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/registration_table.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>

#include "core/interrupt.h"

namespace memspan::transfer {

using namespace table_layout;

Result<RegistrationPages> RegistrationPages::map(Pages pages, const char* doing) {
  MEMSPAN_TRY_ASSIGN(Reservation place, Reservation::make(kBytes, nullptr), doing);
  MEMSPAN_TRY(place.map(0, pages, 0, kBytes), doing);
  return RegistrationPages(std::move(pages), std::move(place));
}

Result<RegistrationPages> RegistrationPages::create() {
  constexpr const char* kDoing = "making a registration table";
  MEMSPAN_TRY_ASSIGN(Pages pages, Pages::create(kBytes, "memspan-registration table"), kDoing);
  MEMSPAN_PASS_ASSIGN(RegistrationPages made, map(std::move(pages), kDoing));
  made.table().header.state.store(kOpen, std::memory_order_relaxed);
  made.table().header.format.store(kFormat, std::memory_order_release);
  return made;
}

Result<RegistrationPages> RegistrationPages::open(Fd descriptor) {
  constexpr const char* kDoing = "opening a registration table";
  MEMSPAN_TRY_ASSIGN(Pages pages, Pages::adopt(std::move(descriptor)), kDoing);
  if (pages.bytes() < kBytes)
    return Status(
        Code::kInvalidArgument,
        fmt::format("a registration table of {} bytes instead of {}", pages.bytes(), kBytes));
  MEMSPAN_PASS_ASSIGN(RegistrationPages opened, map(std::move(pages), kDoing));
  if (mprotect(opened.place_.base(), kCountersAt, PROT_READ) != 0)
    return Status::from_errno("protecting a registration table");
  if (opened.header().format.load(std::memory_order_acquire) != kFormat)
    return Status(Code::kInvalidArgument, "a registration table of another format");
  return opened;
}

std::uint32_t RegistrationTable::add(const Range& range) {
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
  Slot& slot = pages_.table().slots[index];
  slot.base.store(range.base, std::memory_order_release);
  slot.bytes.store(range.bytes, std::memory_order_release);
  slot.tag.store(std::uint64_t{range.allocation} << 32 | range.group, std::memory_order_release);
  slot.stamp.store(++last_stamp_, std::memory_order_release);
  note_change(index);
  return index;
}

void RegistrationTable::remove(std::uint32_t slot) {
  MEMSPAN_CHECK(slot < used_);
  pages_.table().slots[slot].stamp.store(0, std::memory_order_release);
  note_change(slot);
  free_.push_back(slot);
}

void RegistrationTable::note_change(std::uint32_t slot) {
  auto& version = pages_.table().header.version;
  const std::uint64_t number = version.load(std::memory_order_relaxed);
  pages_.table().changes[number % kChanges].store(slot, std::memory_order_release);
  version.store(number + 1, std::memory_order_release);
}

void RegistrationTable::close() {
  pages_.table().header.state.store(kClosed, std::memory_order_release);
}

Status check_counter(std::uint32_t counter) {
  if (counter < table_layout::kCounters) return Status::ok();
  return {Code::kInvalidArgument, fmt::format("invalid counter, which is {}: allowed are 0 to {}",
                                              counter, table_layout::kCounters - 1)};
}

Status wait_for_counter(table_layout::Counters& counters, std::uint32_t counter,
                        std::uint64_t value, const std::atomic<bool>& is_over, Deadline deadline) {
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

bool RegistrationView::refresh() {
  const std::uint64_t version = pages_.header().version.load(std::memory_order_acquire);
  if (version == seen_ && has_read_) [[likely]]
    return false;
  allocations_changed_ = false;
  joined_ = {};
  const std::uint64_t changes = version - seen_;
  const bool has_read = std::exchange(has_read_, false);  // without memory, it reads all next time
  if (!has_read || changes > kChanges / 2 || (changes > 64 && changes > entries_.size() / 8)) {
    read_all();
  } else {
    for (std::uint64_t number = seen_; number != version; ++number)
      take(pages_.change(number).load(std::memory_order_acquire));
    // These were the slots of these changes unless the log has wrapped since; the last change may
    // be under way.
    if (pages_.header().version.load(std::memory_order_acquire) - seen_ >= kChanges - 1) read_all();
  }
  has_read_ = true;
  seen_ = version;
  return allocations_changed_;
}

RegistrationView::Known RegistrationView::read(std::uint32_t index) const {
  // A slot that changes all the time is skipped; its changes are all in the log.
  constexpr int kReadsOfASlot = 8;
  const Slot& slot = pages_.slot(index);
  for (int i = 0; i < kReadsOfASlot; ++i) {
    Known known;
    known.stamp = slot.stamp.load(std::memory_order_acquire);
    if (known.stamp == 0) return {};
    known.range.base = slot.base.load(std::memory_order_acquire);
    known.range.bytes = slot.bytes.load(std::memory_order_acquire);
    const std::uint64_t tag = slot.tag.load(std::memory_order_acquire);
    known.range.allocation = static_cast<std::uint32_t>(tag >> 32);
    known.range.group = static_cast<std::uint32_t>(tag);
    if (slot.stamp.load(std::memory_order_relaxed) != known.stamp) continue;
    const bool is_sound =
        known.range.bytes > 0 && known.range.bytes <= UINT64_MAX - known.range.base;
    return is_sound ? known : Known{};
  }
  return {};
}

void RegistrationView::read_all() {
  const std::uint64_t used =
      std::min<std::uint64_t>(pages_.header().slots_used.load(std::memory_order_acquire), kSlots);
  known_.assign(used, {});
  entries_.clear();
  allocations_.clear();
  joined_count_ = 0;
  for (std::uint32_t slot = 0; slot < used; ++slot) {
    const Known& known = known_[slot] = read(slot);
    if (known.stamp == 0) continue;
    if (known.range.allocation != 0)
      allocations_.push_back(known.range);
    else
      entries_.push_back({.base = known.range.base, .slot = slot});
    if (known.range.group != 0) ++joined_count_;
  }
  std::ranges::sort(allocations_, {}, &Range::base);
  std::ranges::sort(entries_, {}, &Entry::base);
  extend_reach(0);
  allocations_changed_ = true;
}

void RegistrationView::take(std::uint32_t slot) {
  if (slot >= kSlots) return;
  const Known now = read(slot);
  if (slot >= known_.size()) known_.resize(slot + 1);
  Known& before = known_[slot];
  if (before.stamp == now.stamp) return;
  allocations_changed_ |= before.range.allocation != 0 || now.range.allocation != 0;
  if (before.range.group != 0) --joined_count_;
  if (now.range.group != 0) ++joined_count_;
  if (before.stamp != 0) erase(slot, before.range);
  before = now;
  if (now.stamp != 0) insert(slot, now.range);
}

void RegistrationView::insert(std::uint32_t slot, const Range& range) {
  if (range.allocation != 0) {
    allocations_.insert(std::ranges::upper_bound(allocations_, range.base, {}, &Range::base),
                        range);
    return;
  }
  const auto after = std::ranges::upper_bound(entries_, range.base, {}, &Entry::base);
  const auto at = entries_.insert(after, {.base = range.base, .slot = slot});
  extend_reach(static_cast<std::size_t>(at - entries_.begin()));
}

void RegistrationView::erase(std::uint32_t slot, const Range& range) {
  if (range.allocation != 0) return static_cast<void>(std::erase(allocations_, range));
  const auto first = std::ranges::lower_bound(entries_, range.base, {}, &Entry::base);
  const auto at = std::ranges::find(first, entries_.end(), slot, &Entry::slot);
  if (at != entries_.end())
    extend_reach(static_cast<std::size_t>(entries_.erase(at) - entries_.begin()));
}

// Stops as soon as the reach is what it was, which is soon.
void RegistrationView::extend_reach(std::size_t from) {
  std::uint64_t furthest = from == 0 ? 0 : entries_[from - 1].reach;
  for (std::size_t i = from; i < entries_.size(); ++i) {
    furthest = std::max(furthest, range_of(entries_[i]).end());
    if (entries_[i].reach == furthest && i > from) return;
    entries_[i].reach = furthest;
  }
}

bool RegistrationView::covers(std::uint64_t address, std::uint64_t bytes) {
  if (bytes > UINT64_MAX - address) return false;
  const std::uint64_t end = address + bytes;
  const std::size_t count = entries_.size();
  const auto begins_last = [&](std::size_t i) {
    return i < count && entries_[i].base <= address &&
           (i + 1 == count || address < entries_[i + 1].base);
  };
  if (!begins_last(hint_)) {
    if (begins_last(hint_ + 1))
      ++hint_;
    else
      hint_ = static_cast<std::size_t>(
          std::ranges::upper_bound(entries_, address, {}, &Entry::base) - entries_.begin() - 1);
  }
  if (hint_ >= count) return false;  // before the first: -1
  if (end <= entries_[hint_].reach) [[likely]]
    return true;
  return joined_count_ > 0 && joined_covers(address, end, hint_);
}

// From each joined range that contains `address`, forward over those of its group that touch.
bool RegistrationView::joined_covers(std::uint64_t address, std::uint64_t end, std::size_t before) {
  if (joined_.base <= address && end <= joined_.end) return true;
  for (std::size_t first = before + 1; first-- > 0 && entries_[first].reach > address;) {
    const Range& range = range_of(entries_[first]);
    if (range.group == 0 || range.end() <= address) continue;
    std::uint64_t covered = range.end();
    for (std::size_t i = first + 1;
         i < entries_.size() && entries_[i].base <= covered && covered < end; ++i)
      if (const Range& next = range_of(entries_[i]); next.group == range.group)
        covered = std::max(covered, next.end());
    if (covered >= end) {
      joined_ = {range.base, covered, true};
      return true;
    }
  }
  return false;
}

std::optional<RegistrationView::Extent> RegistrationView::extent_of(std::uint64_t address,
                                                                    std::uint64_t bytes) {
  if (const Range* allocation = allocation_of(address, bytes); allocation != nullptr)
    return Extent{allocation->base, allocation->end()};
  if (!covers(address, bytes)) return std::nullopt;
  for (std::size_t i = hint_ + 1; i-- > 0 && entries_[i].reach >= address + bytes;)
    if (const Range& range = range_of(entries_[i]); range.end() >= address + bytes)
      return Extent{range.base, range.end()};
  return joined_;
}

const Range* RegistrationView::allocation_of(std::uint64_t address, std::uint64_t bytes) {
  const auto holds = [&](const Range& range) {
    return range.base <= address && address - range.base < range.bytes &&
           bytes <= range.bytes - (address - range.base);
  };
  if (allocation_hint_ < allocations_.size() && holds(allocations_[allocation_hint_])) [[likely]]
    return &allocations_[allocation_hint_];
  const auto after = std::ranges::upper_bound(allocations_, address, {}, &Range::base);
  if (after == allocations_.begin() || !holds(*(after - 1))) return nullptr;
  allocation_hint_ = static_cast<std::size_t>(after - 1 - allocations_.begin());
  return &allocations_[allocation_hint_];
}

std::string RegistrationView::describe(std::uint64_t address) const {
  const Range* below = nullptr;
  const Range* above = nullptr;
  for (const Known& known : known_) {
    if (known.stamp == 0) continue;
    const Range& range = known.range;
    if (range.base <= address && (below == nullptr || range.base > below->base)) below = &range;
    if (range.base > address && (above == nullptr || range.base < above->base)) above = &range;
  }
  const auto text = [](const Range& range) {
    return fmt::format("[{:#x}, {:#x})", range.base, range.end());
  };
  if (below == nullptr) std::swap(below, above);
  if (below == nullptr) return "it has registered nothing";
  if (above == nullptr) return "the nearest that it has registered is " + text(*below);
  return fmt::format("the nearest that it has registered are {} and {}", text(*below),
                     text(*above));
}

}  // namespace memspan::transfer
