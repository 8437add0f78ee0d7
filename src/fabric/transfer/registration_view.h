// SPDX-License-Identifier: Apache-2.0
// A peer's registration table as this process has read it. The registrations are sorted, so that a
// few comparisons find a piece. The contents of the table are not trusted, only bounded.
//
//   base   [ 100, 200, 250 ]     where each range begins, in order
//   reach  [ 150, 400, 400 ]     the furthest end of all ranges up to here
//
// A piece is in one range exactly when the furthest end of those that begin before it is at or
// after its own. Registered allocations never overlap and are kept apart.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabric/transfer/registration_table.h"

namespace memspan::transfer {

// The pages outlive it. One thread at a time.
class RegistrationView {
 public:
  explicit RegistrationView(const RegistrationPages& pages) : pages_(pages) {}

  // Reads what has changed; nearly free when nothing has. True when registered allocations came or
  // went.
  bool refresh() {
    const std::uint64_t version = pages_.header().version.load(std::memory_order_acquire);
    if (version == seen_ && has_read_) [[likely]]
      return false;
    allocations_changed_ = false;
    joined_ = {};
    const std::uint64_t changes = version - seen_;
    // Without memory, it reads all next time.
    const bool has_read = std::exchange(has_read_, false);
    if (!has_read || changes > table_layout::kChanges / 2 ||
        (changes > 64 && changes > entries_.size() / 8)) {
      read_all();
    } else {
      for (std::uint64_t number = seen_; number != version; ++number)
        take(pages_.change(number).load(std::memory_order_acquire));
      // These were the slots of these changes unless the log has wrapped since; the last change may
      // be under way.
      if (pages_.header().version.load(std::memory_order_acquire) - seen_ >=
          table_layout::kChanges - 1)
        read_all();
    }
    has_read_ = true;
    seen_ = version;
    return allocations_changed_;
  }

  // Whether [address, address + bytes) is in one registration, or in joined ones.
  bool covers(std::uint64_t address, std::uint64_t bytes) {
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
  // The extent around it: a range, or all joined ones that touch. Empty: it is not registered.
  struct Extent {
    std::uint64_t base = 0;
    std::uint64_t end = 0;
    bool is_joined = false;  // of several ranges
  };
  std::optional<Extent> extent_of(std::uint64_t address, std::uint64_t bytes) {
    if (const Range* allocation = allocation_of(address, bytes); allocation != nullptr)
      return Extent{allocation->base, allocation->end()};
    if (!covers(address, bytes)) return std::nullopt;
    for (std::size_t i = hint_ + 1; i-- > 0 && entries_[i].reach >= address + bytes;)
      if (const Range& range = range_of(entries_[i]); range.end() >= address + bytes)
        return Extent{range.base, range.end()};
    return joined_;
  }
  // The registered allocation that contains all of it; null if none does.
  const Range* allocation_of(std::uint64_t address, std::uint64_t bytes) {
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
  bool has_allocations() const { return !allocations_.empty(); }
  bool has_allocation(std::uint32_t number) const {
    return std::ranges::find(allocations_, number, &Range::allocation) != allocations_.end();
  }
  // The nearest registrations around an address, for messages.
  std::string describe(std::uint64_t address) const {
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

  Known read(std::uint32_t index) const {
    // A slot that changes all the time is skipped; its changes are all in the log.
    constexpr int kReadsOfASlot = 8;
    const table_layout::Slot& slot = pages_.slot(index);
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
  const Range& range_of(const Entry& entry) const { return known_[entry.slot].range; }
  void read_all() {
    const std::uint64_t used = std::min<std::uint64_t>(
        pages_.header().slots_used.load(std::memory_order_acquire), table_layout::kSlots);
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
  void take(std::uint32_t slot) {
    if (slot >= table_layout::kSlots) return;
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
  void insert(std::uint32_t slot, const Range& range) {
    if (range.allocation != 0) {
      allocations_.insert(std::ranges::upper_bound(allocations_, range.base, {}, &Range::base),
                          range);
      return;
    }
    const auto after = std::ranges::upper_bound(entries_, range.base, {}, &Entry::base);
    const auto at = entries_.insert(after, {.base = range.base, .slot = slot});
    extend_reach(static_cast<std::size_t>(at - entries_.begin()));
  }
  void erase(std::uint32_t slot, const Range& range) {
    if (range.allocation != 0) return static_cast<void>(std::erase(allocations_, range));
    const auto first = std::ranges::lower_bound(entries_, range.base, {}, &Entry::base);
    const auto at = std::ranges::find(first, entries_.end(), slot, &Entry::slot);
    if (at != entries_.end())
      extend_reach(static_cast<std::size_t>(entries_.erase(at) - entries_.begin()));
  }
  // Stops as soon as the reach is what it was, which is soon.
  void extend_reach(std::size_t from) {
    std::uint64_t furthest = from == 0 ? 0 : entries_[from - 1].reach;
    for (std::size_t i = from; i < entries_.size(); ++i) {
      furthest = std::max(furthest, range_of(entries_[i]).end());
      if (entries_[i].reach == furthest && i > from) return;
      entries_[i].reach = furthest;
    }
  }
  // From each joined range that contains `address`, forward over those of its group that touch.
  // Not inline: covers() then needs fewer registers.
  [[gnu::noinline]] bool joined_covers(std::uint64_t address, std::uint64_t end,
                                       std::size_t before) {
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
