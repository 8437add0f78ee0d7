// SPDX-License-Identifier: Apache-2.0
// The registrations of an endpoint, as its owner gave them: by beginning, each counted.
#pragma once

#include <span>

#include "fabric/remote_access.h"
#include "fabric/transfer/registration_table.h"

namespace memspan::transfer {

// kInvalidArgument for an empty range or one that goes round the end of the address space.
Status check_range(std::uint64_t base, std::uint64_t bytes);

// Writes what it holds into the registration table, which outlives it. One thread at a time.
class Registrations {
 public:
  explicit Registrations(RegistrationTable& table) : table_(table) {}

  // Adding the same range again is counted.
  Status add(std::uint64_t base, std::uint64_t bytes);
  // All or none; those that touch are joined. The ranges' allocation and group do not matter.
  Status add_joined(std::span<const Range> ranges);
  // Takes back the latest one that begins there. kNotFound: none begins there.
  Status remove(std::uint64_t base);
  // kInvalidArgument names a registration of the program's that it overlaps, kOutOfMemory: there is
  // no room for one more.
  Status check_apart(std::uint64_t base, std::uint64_t bytes) const;
  // Registered allocations; gives the registration table's slot.
  Result<std::uint32_t> add_allocation(const Range& range) {
    MEMSPAN_PASS(check_room(1));
    return table_.add(range);
  }
  void remove_allocation(std::uint32_t slot) { table_.remove(slot); }

 private:
  struct Registration {
    std::uint64_t bytes = 0;
    std::uint32_t group = 0;
    std::uint32_t slot = 0;
    std::uint64_t count = 1;
  };
  Status check_room(std::size_t ranges) const;

  RegistrationTable& table_;
  std::multimap<std::uint64_t, Registration> by_base_;  // the last of a base was given last
  std::uint32_t last_group_ = 0;
};

// The registered memory that members on other hosts have asked for, each extent a region.

// The owner's side. The table outlives it. One thread at a time.
class ExposedRegistrations {
 public:
  explicit ExposedRegistrations(const RegistrationPages& table) : view_(table) {}

  struct Extent {
    std::uint64_t base = 0;
    const ExposedRegion* region = nullptr;  // until it is retracted
  };
  // The extent of the piece. The message of kNotFound names the registrations near it.
  Result<Extent> find(RemoteAccess& access, std::uint64_t address, std::uint64_t bytes);
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
