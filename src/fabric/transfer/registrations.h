// SPDX-License-Identifier: Apache-2.0
// The registrations of an endpoint, as its owner gave them: by beginning, each counted.
#pragma once

#include <set>
#include <span>
#include <tuple>

#include "device/choice.h"
#include "device/reservation.h"
#include "fabric/remote_access.h"
#include "fabric/transfer/registration_table.h"
#include "fabric/transfer/remote_service.h"

namespace memspan::transfer {

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

// Writes what it holds into the registration table, which outlives it. One thread at a time.
class Registrations {
 public:
  explicit Registrations(RegistrationTable& table) : table_(table) {}

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
    table_.remove(after->second.slot);
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
    if (ranges <= table_.room()) return Status::ok();
    return {Code::kOutOfMemory,
            fmt::format("{} registrations in addition to the {} that exist are too many; "
                        "allowed are {}",
                        ranges, table_layout::kSlots - table_.room(), table_layout::kSlots)};
  }

 private:
  struct Registration {
    std::uint64_t bytes = 0;
    std::uint32_t group = 0;
    std::uint32_t slot = 0;
    std::uint64_t count = 1;
  };
  void add_new(const Range& range) {
    by_base_.emplace(range.base, Registration{range.bytes, range.group, table_.add(range)});
  }

  RegistrationTable& table_;
  std::multimap<std::uint64_t, Registration> by_base_;  // the last of a base was given last
  std::uint32_t last_group_ = 0;
};

// The registered memory that members on other hosts have asked for, each extent a region. The
// owner's side. The table outlives it. One thread at a time.
class ExposedRegistrations {
 public:
  explicit ExposedRegistrations(const RegistrationPages& table) : view_(table) {}

  // The regions that contain the pieces, up to the first piece that is not registered.
  Result<ResolveAnswer> resolve(RemoteAccess& access, std::span<const Piece> pieces) {
    ResolveAnswer answer;
    std::set<const ExposedRegion*> told;
    view_.refresh();
    for (const Piece& piece : pieces) {
      const auto extent = view_.extent_of(piece.remote, piece.bytes);
      if (!extent) {
        answer.refusal = view_.describe(piece.remote);
        break;
      }
      auto& region = by_range_[{extent->is_joined, extent->base, extent->end}];
      if (region == nullptr) {
        auto* const base = reinterpret_cast<void*>(extent->base);  // NOLINT: an address
        Device* const device = other_device();
        MEMSPAN_PASS_ASSIGN(
            region,
            access.expose(base, extent->end - extent->base,
                          device != nullptr && device->owns(base) ? *device : host_device()));
      }
      if (told.insert(region.get()).second)
        answer.extents.emplace_back(extent->base, region->describe().encode());
    }
    return answer;
  }
  // Call it after the registration at `base` was removed from the table. Retracts what is not
  // registered any more.
  void retract_removed(std::uint64_t base) {
    // Those of one range that begins there, and all joined ones.
    auto at = by_range_.lower_bound({false, base, 0});
    const auto joined = by_range_.lower_bound({true, 0, 0});
    if (at != by_range_.end() && std::get<1>(at->first) != base) at = joined;
    if (at == by_range_.end()) return;
    view_.refresh();  // by far the longest step
    while (at != by_range_.end()) {
      const auto [is_joined, begin, end] = at->first;
      if (!is_joined && begin != base)
        at = joined;
      else if (view_.extent_of(begin, end - begin))
        ++at;
      else
        at = by_range_.erase(at);
    }
  }
  void retract_all() { by_range_.clear(); }

 private:
  RegistrationView view_;
  // By beginning and end; those of several ranges that are joined come last. Null: it could not be
  // exposed.
  std::map<std::tuple<bool, std::uint64_t, std::uint64_t>, std::unique_ptr<ExposedRegion>>
      by_range_;
};

}  // namespace memspan::transfer
