// SPDX-License-Identifier: Apache-2.0
// The virtual-address registry: the same addresses in every process. Which ranges of the pool
// window belong to which pool is agreed in the store, with a key for each range
// (store/recipes/ranges.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/clock.h"
#include "core/status.h"
#include "device/memory.h"
#include "fabric/member.h"

namespace memspan {

// Memory of the host, and behind it that of the device, which may be the host, too. A value; 0
// bytes: there is none of it.
struct RangeParts {
  std::uint64_t host_bytes = 0;
  Device* device = nullptr;
  std::uint64_t device_bytes = 0;
};

// This process's share of one pool's range: the addresses, reserved. Move-only; one thread at a
// time.
class AddressRange {
 public:
  // Takes the range of `name`, or makes it. kInvalidArgument when its users lay it out differently
  // (both are said) or the window is too small, kUnavailable when something else lies there in this
  // process.
  static Result<AddressRange> claim(std::shared_ptr<Member> member, const std::string& name,
                                    const RangeParts& parts, const std::string& layout,
                                    Deadline deadline);
  AddressRange(AddressRange&&) noexcept = default;
  AddressRange& operator=(AddressRange&&) = delete;
  ~AddressRange();

  // Null where there is none of it.
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
