// SPDX-License-Identifier: Apache-2.0
// Registered memory of the program whose pages were made shared in place (memory/adopted_memory.h):
// an allocation of the registration table, by a number with kAdopted, that peers of this host map
// by its descriptor. Its owner must not free it before it takes the registration back; where that
// happened all the same, the next registration that overlaps it finds that out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "core/status.h"
#include "fabric/member.h"
#include "fabric/transfer/device_registrations.h"
#include "fabric/transfer/endpoint_record.h"
#include "fabric/transfer/registration_table.h"
#include "memory/adopted_memory.h"

namespace memspan::transfer {

inline constexpr std::uint32_t kAdopted = std::uint32_t{1} << 30;

// At which byte of the memory that its owner published an allocation begins.
inline std::uint64_t lead_of(const Range& range) {
  const bool is_adopted = (range.allocation & (kAdopted | kOfDevice)) == kAdopted;
  return is_adopted ? AdoptedMemory::lead_of(range.base) : 0;
}

// The owner's side. One thread at a time: adopting takes long, and the table is in use meanwhile.
class AdoptedRegistrations {
 public:
  // The endpoint's table, which has a lock of its own.
  struct Table {
    // Whether there is room for the range and no other registration that it overlaps.
    std::function<Status(const Range&)> check;
    std::function<Result<std::uint32_t>(const Range&)> add;  // gives the slot
    // Peers do not find it any more, on other hosts neither.
    std::function<void(const Range&, std::uint32_t slot)> remove;
  };

  // What it is given outlives it.
  AdoptedRegistrations(Member& member, const EndpointRecord& record, Table table)
      : member_(member), record_(record), table_(std::move(table)) {}
  AdoptedRegistrations(const AdoptedRegistrations&) = delete;
  AdoptedRegistrations& operator=(const AdoptedRegistrations&) = delete;

  // The same range again is counted. As AdoptedMemory::adopt(); kInvalidArgument, too, where it
  // overlaps another registration.
  Status add(std::uint64_t base, std::uint64_t bytes);
  // True: this very range is adopted, and is counted once more. kInvalidArgument: it overlaps one
  // that is. False: it does not.
  Result<bool> count(std::uint64_t base, std::uint64_t bytes);
  // kInvalidArgument: it overlaps one that is, or is the same.
  Status check_apart(std::uint64_t base, std::uint64_t bytes);
  // Takes it back once; the last time it gets private pages again. kNotFound: none begins there.
  // Other failures: it is taken back, but its pages stay shared.
  Status remove(std::uint64_t base);
  // All of them, whatever their counts.
  void remove_all();
  // The process ends soon, and their pages may stay as they are.
  void leave_pages();

 private:
  struct Registration {
    AdoptedMemory memory;
    Range range;
    std::uint32_t slot = 0;
    std::uint64_t count = 1;
  };
  using ByBase = std::map<std::uint64_t, Registration>;
  // Among those that the program has not freed; those that it has are taken back.
  Result<ByBase::iterator> find_overlap(std::uint64_t base, std::uint64_t bytes);
  ByBase::iterator find_any_overlap(std::uint64_t base, std::uint64_t bytes);
  Status erase(ByBase::iterator which);

  Member& member_;
  const EndpointRecord& record_;
  const Table table_;
  ByBase by_base_;
  std::uint32_t last_number_ = kAdopted;
};

}  // namespace memspan::transfer
