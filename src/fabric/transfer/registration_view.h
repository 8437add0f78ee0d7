// SPDX-License-Identifier: Apache-2.0
// A peer's registration table as this process has read it. The registrations are sorted, so that a
// few comparisons find a piece. The contents of the table are not trusted, only bounded.
//
//   bases  [ 100, 200, 250 ]     where each range begins, in order
//   reach  [ 150, 400, 400 ]     the furthest end of all ranges up to here
//
// A piece is in one range exactly when the furthest end of those that begin before it is at or
// after its own. Registered allocations never overlap and are kept apart.
#pragma once

#include <optional>
#include <string>

#include "fabric/transfer/registration_table.h"

namespace memspan::transfer {

// The pages outlive it. One thread at a time.
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
    return std::any_of(allocations_.begin(), allocations_.end(),
                       [number](const Range& range) { return range.allocation == number; });
  }
  // The nearest registrations around an address, for messages.
  std::string describe(std::uint64_t address) const;

 private:
  struct Known {  // of a slot
    std::uint64_t stamp = 0;
    Range range;
  };
  struct Joined {  // [from, to) is covered by ranges that are joined
    std::uint64_t from = 0;
    std::uint64_t to = 0;
  };

  Known read(std::uint32_t slot) const;
  void read_all();
  void take(std::uint32_t slot);
  void insert(std::uint32_t slot, const Range& range);
  void erase(std::uint32_t slot, const Range& range);
  void rebuild();
  void extend_reach(std::size_t from);
  bool joined_covers(std::uint64_t address, std::uint64_t end, std::size_t before);

  const RegistrationPages& pages_;
  std::uint64_t seen_ = 0;  // changes
  bool has_read_ = false;
  bool allocations_changed_ = false;
  std::vector<Known> known_;  // by slot
  std::vector<std::uint64_t> bases_;
  std::vector<std::uint64_t> reach_;
  std::vector<std::uint32_t> slots_;  // whose range each is
  std::vector<Range> allocations_;    // sorted
  std::size_t joined_count_ = 0;      // ranges that have a group
  std::size_t hint_ = 0;
  std::size_t allocation_hint_ = 0;
  Joined joined_;
};

}  // namespace memspan::transfer
