// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/device_registrations.h"

#include <fmt/format.h>

#include <utility>

namespace memspan::transfer {

Result<OpenedPointer> open_registration(Device* device, const std::string& name,
                                        const FetchPublished& fetch) {
  if (device == nullptr)
    return Status(Code::kNotSupported,
                  "it is memory of a device, which this process has not chosen (MEMSPAN_DEVICE)");
  MEMSPAN_PASS_ASSIGN(auto shared, fetch_pointer(name, fetch));
  return device->open_pointer(std::move(shared));
}

Status DeviceRegistrations::add(std::uint64_t base, std::uint64_t bytes) {
  MEMSPAN_TRY_ASSIGN(Registration* const found, find_or_make(base, bytes),
                     fmt::format("registering device memory at {:#x}", base));
  ++found->by_program;
  return Status::ok();
}

Status DeviceRegistrations::add_allocation(std::uint64_t base, std::uint64_t bytes) {
  MEMSPAN_TRY_ASSIGN(Registration* const made, find_or_make(base, bytes),
                     "registering new device memory");
  made->is_allocation = true;
  return Status::ok();
}

Result<DeviceRegistrations::Registration*> DeviceRegistrations::find_or_make(std::uint64_t base,
                                                                             std::uint64_t bytes) {
  MEMSPAN_PASS(check_range(base, bytes));
  if (const auto same = by_base_.find(base); same != by_base_.end() && same->second.bytes == bytes)
    return &same->second;
  MEMSPAN_PASS(check_overlaps(base, bytes));
  const std::uint32_t number = ++last_number_;
  MEMSPAN_PASS_ASSIGN(auto published, publish(base, bytes, number));
  MEMSPAN_PASS_ASSIGN(auto slot, registrations_.add_allocation(
                                     Range{.base = base, .bytes = bytes, .allocation = number}));
  const auto [made, is_new] = by_base_.emplace(
      base, Registration{.published = std::move(published), .bytes = bytes, .slot = slot});
  return &made->second;
}

Status DeviceRegistrations::check_overlaps(std::uint64_t base, std::uint64_t bytes) const {
  auto after = by_base_.lower_bound(base);
  const bool reaches_next = after != by_base_.end() && after->first < base + bytes;
  if (!reaches_next && after != by_base_.begin()) --after;
  const bool overlaps = reaches_next || (after != by_base_.end() && after->first < base &&
                                         after->first + after->second.bytes > base);
  if (!overlaps) return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("{} bytes of device memory at {:#x} overlap the {} that are registered at "
                      "{:#x}",
                      bytes, base, after->second.bytes, after->first)};
}

Status DeviceRegistrations::add_all(std::span<const Range> ranges) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    Status added = add(ranges[i].base, ranges[i].bytes);
    if (added.is_ok()) continue;
    while (i-- > 0) remove(ranges[i].base);
    return added;
  }
  return Status::ok();
}

Result<PublishedPointer> DeviceRegistrations::publish(std::uint64_t base, std::uint64_t bytes,
                                                      std::uint32_t number) {
  const auto* const pointer = reinterpret_cast<const void*>(base);  // NOLINT: an address
  MEMSPAN_PASS_ASSIGN(auto shared, device_->share_pointer(pointer, bytes));
  return PublishedPointer::publish(member_.broker(), record_.allocation_name(number),
                                   std::move(shared));
}

bool DeviceRegistrations::remove(std::uint64_t base) {
  const auto found = by_base_.find(base);
  if (found == by_base_.end() || found->second.by_program == 0) return false;
  if (--found->second.by_program == 0 && !found->second.is_allocation) erase(found);
  return true;
}

// Peers find it in the table no more before the descriptors go.
void DeviceRegistrations::erase(ByBase::iterator which) {
  if (which == by_base_.end()) return;
  registrations_.remove_allocation(which->second.slot);
  by_base_.erase(which);
}

}  // namespace memspan::transfer
