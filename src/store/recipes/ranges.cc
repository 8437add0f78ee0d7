// SPDX-License-Identifier: Apache-2.0
#include "store/recipes/ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "store/recipes/change_queue.h"
#include "store/recipes/contributions.h"

namespace memspan {
namespace {

// Number of places to try if they are in use in this process.
constexpr int kMostPlaces = 64;
// Time for a member to withdraw what it began.
constexpr Duration kRangeWithdrawal = std::chrono::seconds(5);

std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

bool conflict(const NamedRange& one, const NamedRange& other) {
  return one.name == other.name ||
         (one.base < other.base + other.bytes && other.base < one.base + one.bytes);
}

std::string user_prefix(const std::string& prefix, const std::string& name) {
  return fmt::format("{}/user/{}/", prefix, name);
}

std::string user_key(const KeyValueStore& store, const std::string& prefix,
                     const std::string& name) {
  return user_prefix(prefix, name) + std::to_string(store.lease());
}

// Repeats attempts until this member has the name's range.
struct Claim {
  using Ranges = std::vector<NamedRange>;
  using Attempt = Result<std::optional<std::uint64_t>>;

  KeyValueStore& store;
  const std::string& prefix;
  const RangeBounds& bounds;
  NamedRange mine;
  const RangeRegistry::Take& take;
  const Deadline deadline;
  ChangeQueue changes{store};
  int races = 0;  // lost by this claim

  Result<std::uint64_t> run() {
    MEMSPAN_TRY(changes.watch(prefix + "/range/", deadline), "watching the ranges");
    while (!deadline.has_passed()) {
      MEMSPAN_PASS_ASSIGN(auto base, attempt());
      if (base) return *base;
    }
    return Status(Code::kTimeout, "the ranges changed all the time");
  }

  // Empty: look again.
  static Attempt again(const Status& status) {
    if (!status.is_ok()) return status;
    return std::optional<std::uint64_t>();
  }
  std::string key(std::uint64_t base) const {
    return fmt::format("{}/range/{:016x}", prefix, base);
  }

  Result<Ranges> look() {
    const std::string before = prefix + "/range/";
    MEMSPAN_TRY_ASSIGN(const StoreListing listing, store.list(before, deadline),
                       "looking at the ranges");
    Ranges ranges;
    for (const auto& [key, value] : listing) {
      std::uint64_t base = 0;
      std::from_chars(key.data() + before.size(), key.data() + key.size(), base, 16);
      MEMSPAN_TRY_ASSIGN(ranges.emplace_back(), NamedRange::decode(base, value),
                         "looking at the ranges");
    }
    return ranges;
  }

  Attempt attempt() {
    MEMSPAN_TRY_ASSIGN(const Ranges ranges, look(), "claiming a range");
    const auto there = std::find_if(ranges.begin(), ranges.end(), [&](const NamedRange& range) {
      return range.name == mine.name;
    });
    if (there == ranges.end()) return claim_new(ranges);
    if (there->state != NamedRange::State::kConfirmed) return again(wait());
    if (there->layout != mine.layout || there->bytes != mine.bytes) return again(drop(*there));
    if (there->mark != 0) {
      NamedRange unmarked = *there;
      unmarked.mark = 0;
      return again(swap(*there, unmarked).status());
    }
    MEMSPAN_PASS(take(there->base));
    return std::optional(there->base);
  }

  // Waits until a range changes.
  Status wait() {
    auto change = changes.next(deadline);
    if (change.is_ok() || change.code() == Code::kTimeout) return Status::ok();
    return change.status();
  }

  // Other claims also try the first gap, so a claim that lost tries another place.
  std::uint64_t first_place(const Ranges& ranges) const {
    const std::uint64_t first = find_gap(ranges, mine.bytes, bounds.begin, bounds);
    if (races == 0 || first == 0) return first;
    const std::uint64_t skipped = new_nonce() % (std::uint64_t{1} << std::min(races, 6));
    const std::uint64_t other =
        find_gap(ranges, mine.bytes, first + skipped * round_up(mine.bytes, bounds.step), bounds);
    return other == 0 ? first : other;
  }

  Attempt claim_new(const Ranges& ranges) {
    std::uint64_t base = first_place(ranges);
    for (int place = 0; place < kMostPlaces; ++place) {
      if (base == 0) return make_room(ranges);
      const Status status = take(base);
      if (status.is_ok()) return write(base);
      if (status.code() != Code::kUnavailable) return status;
      base = find_gap(ranges, mine.bytes, base + round_up(mine.bytes, bounds.step), bounds);
    }
    return Status(Code::kUnavailable,
                  fmt::format("{} places for {} of addresses are taken by something else here",
                              kMostPlaces, format_size(mine.bytes)));
  }

  Attempt write(std::uint64_t base) {
    mine.base = base;
    mine.mark = new_nonce();  // so that no two tentative ranges are the same
    const std::string wanted = mine.encode();
    MEMSPAN_TRY_ASSIGN(const std::string now,
                       store.compare_and_swap(key(base), "", wanted, deadline, KeyLife::kLease),
                       "claiming a range");
    if (now != wanted) {
      ++races;
      return again(Status::ok());
    }
    auto is_mine = settle();
    if (is_mine.is_ok() && *is_mine) return std::optional(base);
    MEMSPAN_TRY(store.remove(key(base), Deadline::after(kRangeWithdrawal)).status(), "withdrawing");
    ++races;
    return again(is_mine.status());
  }

  // Returns whether the tentative range was confirmed.
  Result<bool> settle() {
    while (!deadline.has_passed()) {
      MEMSPAN_TRY_ASSIGN(const Ranges ranges, look(), "claiming a range");
      bool is_free = true;
      for (const NamedRange& other : ranges) {
        if (other.base == mine.base || !conflict(mine, other)) continue;
        if (other.state != NamedRange::State::kTentative || other.base < mine.base) return false;
        is_free = false;
      }
      if (is_free) return confirm();
      MEMSPAN_PASS(wait());
    }
    return Status(Code::kTimeout, "another claim did not end");
  }

  Result<bool> confirm() {
    NamedRange confirmed = mine;
    confirmed.state = NamedRange::State::kConfirmed;
    confirmed.mark = 0;
    MEMSPAN_TRY(store.set(key(mine.base), confirmed.encode(), deadline), "confirming a range");
    return true;
  }

  Result<StoreListing> users_of(const std::string& name) {
    return store.list(user_prefix(prefix, name), deadline);
  }

  // Drops a range without users.
  Attempt make_room(const Ranges& ranges) {
    for (const NamedRange& range : ranges) {
      if (range.state == NamedRange::State::kDropping) return again(wait());
      if (range.state == NamedRange::State::kTentative) continue;
      MEMSPAN_TRY_ASSIGN(const StoreListing users, users_of(range.name), "looking for users");
      if (users.empty()) return again(drop(range));
    }
    return Status(
        Code::kInvalidArgument,
        fmt::format(
            "the pool needs {} of addresses; what pools may have, {}, is too little, or full",
            format_size(mine.bytes), format_size(bounds.end - bounds.begin)));
  }

  // Marks the range. If it is marked already, drops it unless it has users of that layout;
  // kInvalidArgument if it has.
  Status drop(const NamedRange& range) {
    NamedRange next = range;
    if (range.mark == 0) {
      next.mark = new_nonce();
      return swap(range, next).status();
    }
    MEMSPAN_TRY_ASSIGN(const StoreListing users, users_of(range.name), "looking for users");
    const bool is_used = std::any_of(users.begin(), users.end(),
                                     [&](const auto& user) { return user.second == range.layout; });
    if (is_used) {
      next.mark = 0;
      MEMSPAN_TRY(swap(range, next).status(), "keeping a range that is used");
      return {Code::kInvalidArgument,
              fmt::format("this process makes the pool of {}, but others have it of {}",
                          mine.layout, range.layout)};
    }
    next.state = NamedRange::State::kDropping;
    next.mark = new_nonce();  // so that only one of several that drop it succeeds
    MEMSPAN_TRY_ASSIGN(const bool is_ours, swap(range, next, KeyLife::kLease), "dropping a range");
    if (!is_ours) return Status::ok();
    return store.remove(key(range.base), Deadline::after(kRangeWithdrawal)).status();
  }

  // False if the range has changed in between.
  Result<bool> swap(const NamedRange& from, const NamedRange& to,
                    KeyLife life = KeyLife::kPermanent) {
    const std::string wanted = to.encode();
    MEMSPAN_PASS_ASSIGN(
        auto now, store.compare_and_swap(key(from.base), from.encode(), wanted, deadline, life));
    return now == wanted;
  }
};

}  // namespace

std::uint64_t find_gap(const std::vector<NamedRange>& ranges, std::uint64_t bytes,
                       std::uint64_t from, const RangeBounds& bounds) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
  taken.reserve(ranges.size());
  for (const NamedRange& range : ranges) taken.emplace_back(range.base, range.base + range.bytes);
  std::sort(taken.begin(), taken.end());
  std::uint64_t place = from;
  for (const auto& [begin, past] : taken) {
    if (past <= place) continue;
    if (begin >= place && begin - place >= bytes) break;
    place = round_up(past, bounds.step);
  }
  return place < bounds.end && bytes <= bounds.end - place ? place : 0;
}

Result<std::uint64_t> RangeRegistry::claim(const std::string& name, std::uint64_t bytes,
                                           const std::string& layout, const Take& take,
                                           Deadline deadline) {
  // Set before the ranges are read: from now on no member drops the name's range unseen.
  MEMSPAN_TRY(store_.set(user_key(store_, prefix_, name), layout, deadline, KeyLife::kLease),
              "claiming a range");
  auto base = Claim{.store = store_,
                    .prefix = prefix_,
                    .bounds = bounds_,
                    .mine = {.bytes = bytes, .name = name, .layout = layout},
                    .take = take,
                    .deadline = deadline}
                  .run();
  if (!base.is_ok()) static_cast<void>(release(name, Deadline::after(kRangeWithdrawal)));
  return base;
}

Status RangeRegistry::release(const std::string& name, Deadline deadline) {
  return store_.remove(user_key(store_, prefix_, name), deadline).status();
}

}  // namespace memspan
