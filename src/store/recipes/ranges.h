// SPDX-License-Identifier: Apache-2.0
// Recipe: named ranges of numbers that do not overlap, such as addresses of pools.
//
//   PREFIX/ranges         all ranges, by base: bytes, name, layout and mark of each
//   PREFIX/user/NAME/17   the layout; for each member that uses the name, under its lease
//
// A claim reads the ranges and swaps them for those with its own. If another member was faster, it
// tries again with what that one has written.
//
// A range stays while its name has users. Without users, it is dropped if the same name with
// another layout, or another name, needs the space. It is marked first, then its users are listed
// again, then it is dropped. A user that finds its range marked removes the mark, and the swap that
// would drop the range fails. So a range in use is never dropped.
#pragma once

#include <map>

#include "store/fields.h"
#include "store/key_value_store.h"

namespace memspan::inline store {

// A value.
struct NamedRange {
  std::uint64_t bytes = 0;
  std::string name = {};
  std::string layout = {};  // a sentence; the same for all users of the name
  std::uint64_t mark = 0;   // 0: none; unique, so that a mark never recurs

  static void fields(auto& codec, auto& self) {
    codec(self.bytes, self.name, self.layout, self.mark);
  }
  bool operator==(const NamedRange&) const = default;
};
using NamedRanges = std::map<std::uint64_t, NamedRange>;  // by base

// Allowed places of ranges: at `begin` plus a multiple of `step`, below `end`. A value.
struct RangeBounds {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t step = 1;
};

// The lowest place for `bytes` between the ranges, at or above `from`; 0: none.
std::uint64_t find_gap(const NamedRanges& ranges, std::uint64_t bytes, std::uint64_t from,
                       const RangeBounds& bounds);

// One member's view. Thread-safe. The store must outlive it.
struct RangeRegistry {
  // Reserves the place in this process before the claim is published. kUnavailable: the place is in
  // use in this process. A call releases the place of the call before.
  using Take = std::function<Status(std::uint64_t base)>;

  KeyValueStore& store;
  // The same for all members.
  const std::string prefix;
  const RangeBounds bounds;

  // Returns the base of the name's range, which this member then uses: one that others have
  // claimed, or a new one. kInvalidArgument if its users have another layout (both are named) or no
  // space is left, kUnavailable if the place is in use in this process.
  Result<std::uint64_t> claim(const std::string& name, std::uint64_t bytes,
                              const std::string& layout, const Take& take, Deadline deadline);
  // Ends this member's use of the name, which otherwise ends with its lease.
  Status release(const std::string& name, Deadline deadline);
};

}  // namespace memspan::inline store
