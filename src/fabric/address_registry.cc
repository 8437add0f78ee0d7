// SPDX-License-Identifier: Apache-2.0
#include "fabric/address_registry.h"

#include "core/bytes.h"
#include "device/host/host_device.h"
#include "memory/address_plan.h"
#include "store/recipes/ranges.h"

namespace memspan {
namespace {

// The offset of the device's part.
std::uint64_t device_offset(const RangeParts& parts) {
  const bool is_host = parts.device == nullptr || parts.device->is_host();
  return is_host ? parts.host_bytes : align_up(parts.host_bytes, kDeviceAddressStep);
}

RangeRegistry registry_of(Member& member) {
  const RangeBounds window{.begin = address_windows().pool,
                           .end = address_windows().pool + address_windows().pool_bytes(),
                           .step = kDeviceAddressStep};
  return {member.store(), "fabric/addresses", window};
}

}  // namespace

Result<AddressRange> AddressRange::claim(std::shared_ptr<Member> member, const std::string& name,
                                         const RangeParts& parts, const std::string& layout,
                                         Deadline deadline) {
  Parts reserved;
  const auto take = [&](std::uint64_t base) { return reserve(parts, base, reserved); };
  const std::uint64_t bytes = device_offset(parts) + parts.device_bytes;
  MutexLock lock(member->claiming());
  MEMSPAN_TRY(registry_of(*member).claim(name, bytes, layout, take, deadline).status(),
              "reserving the addresses of the pool");
  return AddressRange(std::move(member), name, std::move(reserved));
}

Status AddressRange::reserve(const RangeParts& parts, std::uint64_t base, Parts& into) {
  into = {};
  const auto take = [](Device& device, std::uint64_t at, std::uint64_t bytes,
                       std::unique_ptr<DeviceRange>& part) {
    if (bytes == 0) return Status::ok();
    MEMSPAN_PASS_ASSIGN(part, device.reserve_at(bytes, reinterpret_cast<void*>(at)));
    return Status::ok();
  };
  MEMSPAN_PASS(take(host_device(), base, parts.host_bytes, into[0]));
  return take(*parts.device, base + device_offset(parts), parts.device_bytes, into[1]);
}

// Best effort: if it fails, this user's key ends with the lease.
AddressRange::~AddressRange() {
  if (member_ != nullptr)
    member_->tell_end(
        [&](const Deadline& deadline) { return registry_of(*member_).release(name_, deadline); });
}

}  // namespace memspan
