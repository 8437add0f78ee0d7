// SPDX-License-Identifier: Apache-2.0
#include "store/recipes/ranges.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/environment.h"
#include "core/pages.h"
#include "store/recipes/contributions.h"

namespace memspan::inline store {
namespace {

// Number of places to try if they are in use in this process.
constexpr int kMostPlaces = 64;
// Time for a member to withdraw what it began.
constexpr Duration kRangeWithdrawal = std::chrono::seconds(5);

// The prefix of the keys of a name's users.
std::string users_prefix(const RangeRegistry& registry, const std::string& name) {
  return fmt::format("{}/user/{}/", registry.prefix, name);
}

std::string user_key(const RangeRegistry& registry, const std::string& name) {
  return users_prefix(registry, name) + std::to_string(registry.store.lease());
}

// An empty text means that there are no ranges yet.
Result<NamedRanges> read_ranges(std::string_view text) {
  if (text.empty()) return NamedRanges();
  return decode_record<NamedRanges>(text, "range");
}

// One call of claim(): repeats attempts until this member has the name's range.
struct Claim {
  using Base = Result<std::optional<std::uint64_t>>;

  const RangeRegistry& registry;
  NamedRange mine;
  const RangeRegistry::Take& take;
  const Deadline& deadline;

  Result<std::uint64_t> run() {
    KeyValueStore& store = registry.store;
    const std::string key = registry.prefix + "/ranges";
    auto read = store.get_now(key, deadline);
    if (!read.is_ok() && read.code() != Code::kNotFound)
      return read.status().annotate("looking at the ranges");
    std::string now = read.is_ok() ? std::move(*read) : "";
    while (!deadline.has_passed()) {
      MEMSPAN_TRY_ASSIGN(NamedRanges ranges, read_ranges(now), "looking at the ranges");
      MEMSPAN_PASS_ASSIGN(const auto base, change(ranges));
      const std::string wanted = encode_record(ranges);
      if (now != wanted) {
        MEMSPAN_TRY_ASSIGN(now, store.compare_and_swap(key, now, wanted, deadline),
                           "claiming a range");
        if (now != wanted) continue;  // another member was faster
      }
      if (base) return *base;
    }
    return Status(Code::kTimeout, "the ranges changed all the time");
  }

  // Each makes the next change that the claim needs. Returns the base if this member has its range
  // once the store has these ranges.
  Base change(NamedRanges& ranges) {
    const auto there = std::find_if(ranges.begin(), ranges.end(), [&](const auto& each) {
      return each.second.name == mine.name;
    });
    if (there == ranges.end()) return add(ranges);
    auto& [base, range] = *there;
    if (range.layout != mine.layout || range.bytes != mine.bytes) return drop(ranges, there);
    MEMSPAN_PASS(take(base));
    range.mark = 0;
    return Base(base);
  }

  Base add(NamedRanges& ranges) {
    const RangeBounds& bounds = registry.bounds;
    std::uint64_t base = find_gap(ranges, mine.bytes, bounds.begin, bounds);
    for (int place = 0; place < kMostPlaces; ++place) {
      if (base == 0) return make_space(ranges);
      const Status status = take(base);
      if (status.is_ok()) {
        ranges[base] = mine;
        return Base(base);
      }
      if (status.code() != Code::kUnavailable) return status;
      base = find_gap(ranges, mine.bytes, base + align_up(mine.bytes, bounds.step), bounds);
    }
    return Status(Code::kUnavailable,
                  fmt::format("{} places for {} of addresses are taken by something else here",
                              kMostPlaces, format_size(mine.bytes)));
  }

  Result<StoreListing> users_of(const std::string& name) {
    auto users = registry.store.list(users_prefix(registry, name), deadline);
    if (!users.is_ok()) return users.status().annotate("looking for users");
    return users;
  }

  // Drops a range without users.
  Base make_space(NamedRanges& ranges) {
    for (auto range = ranges.begin(); range != ranges.end(); ++range) {
      MEMSPAN_PASS_ASSIGN(const StoreListing users, users_of(range->second.name));
      if (users.empty()) return drop(ranges, range);
    }
    return Status(
        Code::kInvalidArgument,
        fmt::format(
            "the pool needs {} of addresses; what pools may have, {}, is too little, or full",
            format_size(mine.bytes), format_size(registry.bounds.end - registry.bounds.begin)));
  }

  // Marks the range. If it is marked already, drops it unless it has users of that layout;
  // kInvalidArgument if it has.
  Base drop(NamedRanges& ranges, NamedRanges::iterator there) {
    NamedRange& range = there->second;
    if (range.mark == 0) {
      range.mark = new_nonce();
      return Base(std::nullopt);
    }
    MEMSPAN_PASS_ASSIGN(const StoreListing users, users_of(range.name));
    for (const auto& [key, layout] : users)
      if (layout == range.layout)
        return Status(Code::kInvalidArgument,
                      fmt::format("this process makes the pool of {}, but others have it of {}",
                                  mine.layout, range.layout));
    ranges.erase(there);
    return Base(std::nullopt);
  }
};

}  // namespace

std::uint64_t find_gap(const NamedRanges& ranges, std::uint64_t bytes, std::uint64_t from,
                       const RangeBounds& bounds) {
  std::uint64_t place = from;
  for (const auto& [begin, range] : ranges) {
    const std::uint64_t past = begin + range.bytes;
    if (past <= place) continue;
    if (begin >= place && begin - place >= bytes) break;
    place = align_up(past, bounds.step);
  }
  return place < bounds.end && bytes <= bounds.end - place ? place : 0;
}

Result<std::uint64_t> RangeRegistry::claim(const std::string& name, std::uint64_t bytes,
                                           const std::string& layout, const Take& take,
                                           Deadline deadline) {
  // Set before the ranges are read: from now on no member drops the name's range unseen.
  MEMSPAN_TRY(store.set(user_key(*this, name), layout, deadline, KeyLife::kLease),
              "claiming a range");
  const NamedRange mine{.bytes = bytes, .name = name, .layout = layout};
  auto base = Claim{*this, mine, take, deadline}.run();
  if (!base.is_ok()) static_cast<void>(release(name, Deadline::after(kRangeWithdrawal)));
  return base;
}

Status RangeRegistry::release(const std::string& name, Deadline deadline) {
  return store.remove(user_key(*this, name), deadline).status();
}

}  // namespace memspan::inline store
