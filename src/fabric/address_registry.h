// SPDX-License-Identifier: Apache-2.0
// The registry of virtual addresses: a pool has the same addresses in every process. The members
// agree in the store which ranges of the pool window belong to which pool, with one key for each
// range (store/recipes/ranges.h).
#pragma once

#include <array>

#include "fabric/member.h"

namespace memspan {

// Host memory, followed by memory of a device, which may also be the host. A value; a part of 0
// bytes does not exist.
struct RangeParts {
  std::uint64_t host_bytes = 0;
  Device* device = nullptr;
  std::uint64_t device_bytes = 0;
};

// This process's share of one pool's range: the addresses, reserved. Move-only; one thread at a
// time.
class AddressRange {
 public:
  // Takes the range of `name`, or creates it. kInvalidArgument: another process gave another layout
  // (the message names both), or the window is too small. kUnavailable: this process already uses
  // the addresses.
  static Result<AddressRange> claim(std::shared_ptr<Member> member, const std::string& name,
                                    const RangeParts& parts, const std::string& layout,
                                    Deadline deadline);
  AddressRange(AddressRange&&) noexcept = default;
  AddressRange& operator=(AddressRange&&) = delete;
  ~AddressRange();

  // Null if the range has no such part.
  DeviceRange* host_part() { return parts_[0].get(); }
  DeviceRange* device_part() { return parts_[1].get(); }

 private:
  using Parts = std::array<std::unique_ptr<DeviceRange>, 2>;
  static Status reserve(const RangeParts& parts, std::uint64_t base, Parts& into);
  AddressRange(std::shared_ptr<Member> member, std::string name, Parts parts)
      : member_(std::move(member)), name_(std::move(name)), parts_(std::move(parts)) {}
  std::shared_ptr<Member> member_;  // shared with the process's other pools; null when moved from
  std::string name_;
  Parts parts_;
};

}  // namespace memspan
