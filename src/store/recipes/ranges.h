// SPDX-License-Identifier: Apache-2.0
// Recipe: named ranges of one line of numbers that do not overlap, such as addresses of pools. Each
// range is a key of its own, so that claims of different names hardly meet.
//
//   PREFIX/range/0000300040000000   name, bytes, layout, state of the range that begins there
//   PREFIX/user/NAME/17             the layout; of each member that uses the name, under its lease
//
// A claim writes its range as tentative, under its lease, and then looks at all ranges at one
// moment. Of two claims that overlap, or have one name, at least one sees the other:
//
//   the other is confirmed    this one withdraws
//   both are tentative        the one that begins lower waits, the other one withdraws
//   nobody is in the way      the range is confirmed, and stays
//
// A range stays while its name has users. One without users makes room, when that is needed, for
// the same name with another layout and for others: it is marked first, then its users are looked
// for once more, then it is dropped. A user that finds its range marked takes the mark away, and
// the swap that would drop it fails. So a range never goes that somebody uses.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "store/key_value_store.h"

namespace memspan {

// A value.
struct NamedRange {
  enum class State : std::uint8_t {
    kTentative = 0,  // under the lease of the member that claims it
    kConfirmed = 1,
    kDropping = 2,  // under the lease of the member that drops it
  };
  State state = State::kTentative;
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  std::string name = {};
  std::string layout = {};  // a sentence; all users of the name say the same
  std::uint64_t mark = 0;   // 0: none; no two are the same, so that a value never comes back

  std::string encode() const;  // without the base, which is in the key
  static Result<NamedRange> decode(std::uint64_t base, std::string_view text);
  bool operator==(const NamedRange&) const = default;
};

// Where ranges may lie: at `begin` plus a multiple of `step`, below `end`. A value.
struct RangeBounds {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t step = 1;
};

// The lowest place for `bytes` between the ranges (in any order), at or above `from`; 0: nowhere.
std::uint64_t find_gap(const std::vector<NamedRange>& ranges, std::uint64_t bytes,
                       std::uint64_t from, const RangeBounds& bounds);

// One member's view. Thread-safe. The store must outlive it.
class RangeRegistry {
 public:
  // Takes the place for this process before others are told. kUnavailable: something else is there
  // in this process. A call gives back what the call before took.
  using Take = std::function<Status(std::uint64_t base)>;

  // All members give the same prefix and bounds.
  RangeRegistry(KeyValueStore& store, std::string prefix, RangeBounds bounds)
      : store_(store), prefix_(std::move(prefix)), bounds_(bounds) {}

  // The base of the name's range, which this member then uses: the range that others have claimed,
  // or a new one. kInvalidArgument when its users say another layout (both are named) or there is
  // no room, kUnavailable when something else is there in this process.
  Result<std::uint64_t> claim(const std::string& name, std::uint64_t bytes,
                              const std::string& layout, const Take& take, Deadline deadline);
  // This member does not use the name any more. Without it that is so when its lease ends.
  Status release(const std::string& name, Deadline deadline);

 private:
  std::string user_prefix(const std::string& name) const;
  std::string user_key(const std::string& name) const;

  KeyValueStore& store_;
  const std::string prefix_;
  const RangeBounds bounds_;
};

}  // namespace memspan
