// SPDX-License-Identifier: Apache-2.0
// The registrations of an endpoint, as its owner gave them: by beginning, each counted.
#pragma once

#include <span>

#include "device/choice.h"
#include "device/reservation.h"
#include "fabric/remote_access.h"
#include "fabric/transfer/registration_table.h"

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
    const std::uint32_t slot = table_.add(Range{.base = base, .bytes = bytes});
    by_base_.emplace(base, Registration{.bytes = bytes, .slot = slot});
    return Status::ok();
  }
  // All or none; those that touch are joined. The ranges' allocation and group do not matter.
  Status add_joined(std::span<const Range> ranges) {
    for (std::size_t i = 0; i < ranges.size(); ++i)
      MEMSPAN_TRY(check_range(ranges[i].base, ranges[i].bytes), fmt::format("piece {}", i));
    MEMSPAN_PASS(check_room(ranges.size()));
    if (++last_group_ == 0) ++last_group_;
    for (const Range& range : ranges) {
      const std::uint32_t slot =
          table_.add(Range{.base = range.base, .bytes = range.bytes, .group = last_group_});
      by_base_.emplace(range.base,
                       Registration{.bytes = range.bytes, .group = last_group_, .slot = slot});
    }
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
  // Registered allocations; gives the registration table's slot.
  Result<std::uint32_t> add_allocation(const Range& range) {
    MEMSPAN_PASS(check_room(1));
    return table_.add(range);
  }

 private:
  struct Registration {
    std::uint64_t bytes = 0;
    std::uint32_t group = 0;
    std::uint32_t slot = 0;
    std::uint64_t count = 1;
  };
  Status check_room(std::size_t ranges) const {
    if (ranges <= table_.room()) return Status::ok();
    return {Code::kOutOfMemory,
            fmt::format("{} registrations in addition to the {} that exist are too many; "
                        "allowed are {}",
                        ranges, table_layout::kSlots - table_.room(), table_layout::kSlots)};
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

  struct Extent {
    std::uint64_t base = 0;
    const ExposedRegion* region = nullptr;  // until it is retracted
  };
  // The extent of the piece. The message of kNotFound names the registrations near it.
  Result<Extent> find(RemoteAccess& access, std::uint64_t address, std::uint64_t bytes) {
    view_.refresh();
    const auto extent = view_.extent_of(address, bytes);
    if (!extent) return Status(Code::kNotFound, view_.describe(address));
    const std::uint64_t length = extent->end - extent->base;
    Extents& extents = extent->is_joined ? joined_ : single_;
    const auto [first, last] = extents.equal_range(extent->base);
    for (auto it = first; it != last; ++it)
      if (it->second.bytes == length) return Extent{extent->base, it->second.region.get()};
    auto* const base = reinterpret_cast<void*>(extent->base);  // NOLINT: an address
    Device* const device = other_device();
    MEMSPAN_PASS_ASSIGN(
        auto region,
        access.expose(base, length,
                      device != nullptr && device->owns(base) ? *device : host_device()));
    const ExposedRegion* const made = region.get();
    extents.emplace(extent->base, Exposed{length, std::move(region)});
    return Extent{extent->base, made};
  }
  // Call it after the registration at `base` was removed from the table. Retracts what is not
  // registered any more.
  void retract_removed(std::uint64_t base) {
    const auto [first, last] = single_.equal_range(base);
    retract_removed(single_, first, last);
    retract_removed(joined_, joined_.begin(), joined_.end());
  }
  void retract_all() {
    single_.clear();
    joined_.clear();
  }

 private:
  struct Exposed {
    std::uint64_t bytes = 0;
    std::unique_ptr<ExposedRegion> region;
  };
  using Extents = std::multimap<std::uint64_t, Exposed>;  // by base
  void retract_removed(Extents& extents, Extents::iterator first, Extents::iterator last) {
    if (first == last) return;
    view_.refresh();
    while (first != last) {
      const auto now = first++;
      if (!view_.extent_of(now->first, now->second.bytes)) extents.erase(now);
    }
  }

  RegistrationView view_;
  Extents single_;  // of one range each
  Extents joined_;
};

}  // namespace memspan::transfer
