// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/exposed_registrations.h"

#include "device/choice.h"
#include "device/host/host_device.h"

namespace memspan::transfer {

Result<ExposedRegistrations::Extent> ExposedRegistrations::find(RemoteAccess& access,
                                                                std::uint64_t address,
                                                                std::uint64_t bytes) {
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

void ExposedRegistrations::retract_removed(std::uint64_t base) {
  const auto [first, last] = single_.equal_range(base);
  retract_removed(single_, first, last);
  retract_removed(joined_, joined_.begin(), joined_.end());
}

void ExposedRegistrations::retract_removed(Extents& extents, Extents::iterator first,
                                           Extents::iterator last) {
  if (first == last) return;
  view_.refresh();
  while (first != last) {
    const auto now = first++;
    if (!view_.extent_of(now->first, now->second.bytes)) extents.erase(now);
  }
}

}  // namespace memspan::transfer
