// SPDX-License-Identifier: Apache-2.0
// The registry of virtual addresses: a pool has the same addresses in every process. The members
// agree in the store which ranges of the pool window belong to which pool (store/recipes/ranges.h).
#pragma once

#include <array>

#include "device/choice.h"
#include "device/reservation.h"
#include "fabric/member.h"
#include "memory/address_plan.h"
#include "store/recipes/ranges.h"

namespace memspan::inline fabric {

// Takes huge pages if the caller allows them and enough are free; else reserves normal pages.
inline Result<Pages> make_pages(std::size_t bytes, bool may_be_huge, const char* label) {
  if (bytes >= kHugePage && may_be_huge)
    if (auto huge = Pages::create_huge(bytes, label); huge.is_ok()) return huge;
  return Pages::create(bytes, label);
}

// Host memory, followed by memory of a device, which may also be the host. A value; a part of 0
// bytes does not exist.
struct RangeParts {
  std::uint64_t host_bytes = 0;
  Device* device = nullptr;
  std::uint64_t device_bytes = 0;

  // The offset of the device's part.
  std::uint64_t device_offset() const {
    return device->is_host() ? host_bytes : align_up(host_bytes, kDeviceAddressStep);
  }
};

// This process's share of one pool's range: the addresses, reserved. One thread at a time.
class AddressRange {
 public:
  // Takes the range of `name`, or creates it. kInvalidArgument: another process gave another layout
  // (the message names both), or the window is too small. kUnavailable: this process already uses
  // the addresses.
  static Result<std::unique_ptr<AddressRange>> claim(std::shared_ptr<Member> member,
                                                     const std::string& name,
                                                     const RangeParts& parts,
                                                     const std::string& layout, Deadline deadline) {
    Parts reserved;
    const auto take = [&](std::uint64_t base) { return reserve(parts, base, reserved); };
    const std::uint64_t bytes = parts.device_offset() + parts.device_bytes;
    MutexLock lock(member->claiming());
    MEMSPAN_TRY(registry_of(*member).claim(name, bytes, layout, take, deadline).status(),
                "reserving the addresses of the pool");
    return std::unique_ptr<AddressRange>(
        new AddressRange(std::move(member), name, std::move(reserved)));
  }
  // Best effort: if it fails, this user's key ends with the lease.
  ~AddressRange() {
    member_->tell_end(
        [&](const Deadline& deadline) { return registry_of(*member_).release(name_, deadline); });
  }

  // Null if the range has no such part.
  DeviceRange* host_part() const { return parts_[0].get(); }
  DeviceRange* device_part() const { return parts_[1].get(); }

 private:
  using Parts = std::array<std::unique_ptr<DeviceRange>, 2>;
  static RangeRegistry registry_of(Member& member) {
    const RangeBounds window{.begin = address_windows().pool,
                             .end = address_windows().pool + address_windows().pool_bytes(),
                             .step = kDeviceAddressStep};
    return {member.store(), "fabric/addresses", window};
  }
  static Status reserve(const RangeParts& parts, std::uint64_t base, Parts& into) {
    into = {};
    const auto take = [](Device& device, std::uint64_t at, std::uint64_t bytes,
                         std::unique_ptr<DeviceRange>& part) {
      if (bytes == 0) return Status::ok();
      MEMSPAN_PASS_ASSIGN(part, device.reserve_at(bytes, reinterpret_cast<void*>(at)));
      return Status::ok();
    };
    MEMSPAN_PASS(take(host_device(), base, parts.host_bytes, into[0]));
    return take(*parts.device, base + parts.device_offset(), parts.device_bytes, into[1]);
  }
  AddressRange(std::shared_ptr<Member> member, std::string name, Parts parts)
      : member_(std::move(member)), name_(std::move(name)), parts_(std::move(parts)) {}
  const std::shared_ptr<Member> member_;  // shared with the process's other pools
  const std::string name_;
  const Parts parts_;
};

}  // namespace memspan::inline fabric
