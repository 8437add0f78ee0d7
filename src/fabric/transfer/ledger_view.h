// SPDX-License-Identifier: Apache-2.0
// A peer's ledger as this process has read it: what is registered, sorted, so that a piece is
// looked up in the time of a few comparisons. What the ledger says is not trusted, only bounded.
//
//   bases  [ 100, 200, 250 ]     where each range begins, in order
//   reach  [ 150, 400, 400 ]     the furthest end of all ranges up to here
//
// A piece lies in one range exactly when the furthest end of those that begin before it is at or
// after its own. Library memory never overlaps and is kept apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fabric/transfer/ledger.h"

namespace memspan::transfer {

// The pages outlive it. One thread at a time.
class LedgerView {
 public:
  explicit LedgerView(const LedgerPages& pages) : pages_(pages) {}

  // Reads what has changed; nearly free when nothing has. True when library memory came or went.
  bool refresh();

  // Whether [address, address + bytes) lies in one registration, or in such as are joined.
  bool covers(std::uint64_t address, std::uint64_t bytes);
  // The library memory that all of it lies in.
  const Range* slice_of(std::uint64_t address, std::uint64_t bytes);
  bool has_slices() const { return !slices_.empty(); }
  bool has_slice(std::uint32_t number) const;
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

  const LedgerPages& pages_;
  std::uint64_t seen_ = 0;  // changes
  bool has_read_ = false;
  bool slices_changed_ = false;
  std::vector<Known> known_;  // by slot
  std::vector<std::uint64_t> bases_;
  std::vector<std::uint64_t> reach_;
  std::vector<std::uint32_t> slots_;  // whose range each is
  std::vector<Range> slices_;         // sorted
  std::size_t joined_count_ = 0;      // ranges that have a group
  std::size_t hint_ = 0;
  std::size_t slice_hint_ = 0;
  Joined joined_;
};

}  // namespace memspan::transfer
