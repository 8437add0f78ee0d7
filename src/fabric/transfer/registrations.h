// SPDX-License-Identifier: Apache-2.0
// The registrations of an endpoint, as its owner gave them: by beginning, each counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "core/status.h"
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
  Result<std::uint32_t> add_allocation(const Range& range);
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

}  // namespace memspan::transfer
