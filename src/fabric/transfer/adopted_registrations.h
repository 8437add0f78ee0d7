// SPDX-License-Identifier: Apache-2.0
// Registered memory of the program whose pages were made shared in place (memory/adopted_memory.h).
// It is an allocation in the registration table, its number has kAdopted, and peers of this host
// map it by its descriptor. Its owner must not free it before it takes the registration back. If it
// does, the next registration that overlaps it notices that.
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

// The offset of an allocation in the memory that its owner published.
inline std::uint64_t lead_of(const Range& range) {
  const bool is_adopted = (range.allocation & (kAdopted | kOfDevice)) == kAdopted;
  return is_adopted ? AdoptedMemory::lead_of(range.base) : 0;
}

// The owner's side. One thread at a time. Adopting takes long; others use the table during it.
class AdoptedRegistrations {
 public:
  // The endpoint's table, which has a lock of its own.
  struct Table {
    // Whether there is room for the range and no other registration that it overlaps.
    std::function<Status(const Range&)> check;
    std::function<Result<std::uint32_t>(const Range&)> add;  // gives the slot
    // Afterwards peers on this and other hosts do not find it.
    std::function<void(const Range&, std::uint32_t slot)> remove;
  };

  // The arguments outlive it.
  AdoptedRegistrations(Member& member, const EndpointRecord& record, Table table)
      : member_(member), record_(record), table_(std::move(table)) {}
  AdoptedRegistrations(const AdoptedRegistrations&) = delete;
  AdoptedRegistrations& operator=(const AdoptedRegistrations&) = delete;

  // Counts the same range again. Fails as AdoptedMemory::adopt(), and with kInvalidArgument if it
  // overlaps another registration.
  Status add(std::uint64_t base, std::uint64_t bytes);
  // True: exactly this range is adopted, and is counted once more. False: no adopted range overlaps
  // it. kInvalidArgument: another adopted range does.
  Result<bool> count(std::uint64_t base, std::uint64_t bytes);
  // kInvalidArgument: it equals or overlaps an adopted range.
  Status check_apart(std::uint64_t base, std::uint64_t bytes);
  // Takes it back once; the last time it gets private pages again. kNotFound: no range begins
  // there. Other failures: it is taken back, but its pages stay shared.
  Status remove(std::uint64_t base);
  // Removes all of them, whatever their counts.
  void remove_all();
  // The process ends soon, and the pages may stay as they are.
  void leave_pages();

 private:
  struct Registration {
    AdoptedMemory memory;
    Range range;
    std::uint32_t slot = 0;
    std::uint64_t count = 1;
  };
  using ByBase = std::map<std::uint64_t, Registration>;
  // Ignores ranges that the program has freed, and takes them back.
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
