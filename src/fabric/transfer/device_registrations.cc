// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/device_registrations.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iterator>
#include <vector>

#include "device/pages.h"

namespace memspan::transfer {
namespace {

constexpr std::size_t kMostText = 256;

// The first byte is the length.
Result<Fd> descriptor_of(const std::string& text) {
  if (text.empty() || text.size() >= kMostText)
    return Status(Code::kInternal, "the driver's words for memory are too long");
  MEMSPAN_TRY_ASSIGN(Pages pages, Pages::create(kMostText, "memspan-device-memory"),
                     "sharing memory of a device");
  const std::string all = static_cast<char>(text.size()) + text;
  if (::pwrite(pages.descriptor(), all.data(), all.size(), 0) != static_cast<ssize_t>(all.size()))
    return Status::from_errno("sharing memory of a device");
  return pages.duplicate();
}

Result<std::string> text_of(const Fd& descriptor) {
  char all[kMostText] = "";
  if (::pread(descriptor.get(), all, sizeof all, 0) != static_cast<ssize_t>(sizeof all))
    return Status(Code::kInternal, "something else came than words for memory of a device");
  return std::string(all + 1, static_cast<unsigned char>(all[0]));
}

}  // namespace

Result<std::shared_ptr<std::byte>> open_shared(Device* device, const Fd& descriptor) {
  if (device == nullptr)
    return Status(Code::kNotSupported,
                  "it is memory of a device, which this process has not chosen (MEMSPAN_DEVICE)");
  MEMSPAN_TRY_ASSIGN(const std::string text, text_of(descriptor), "opening memory of a device");
  return device->open_pointer(text);
}

DeviceRegistrations::~DeviceRegistrations() {
  for (const auto& [base, registration] : by_base_)
    member_.broker().retract(record_.allocation_name(registration.number));
}

Status DeviceRegistrations::add(std::uint64_t base, std::uint64_t bytes) {
  MEMSPAN_PASS(check_range(base, bytes));
  if (const auto same = by_base_.find(base);
      same != by_base_.end() && same->second.bytes == bytes) {
    ++same->second.count;
    return Status::ok();
  }
  auto after = by_base_.lower_bound(base);
  const bool reaches_next = after != by_base_.end() && after->first < base + bytes;
  if (!reaches_next && after != by_base_.begin()) --after;
  if (reaches_next ||
      (after != by_base_.end() && after->first < base && after->first + after->second.bytes > base))
    return {Code::kInvalidArgument,
            fmt::format("{} bytes of device memory at {:#x} overlap the {} that are registered at "
                        "{:#x}",
                        bytes, base, after->second.bytes, after->first)};
  Registration made{.bytes = bytes, .number = ++last_number_};
  MEMSPAN_PASS(publish(made, base));
  auto slot =
      registrations_.add_allocation(Range{.base = base, .bytes = bytes, .allocation = made.number});
  if (!slot.is_ok()) {
    member_.broker().retract(record_.allocation_name(made.number));
    return slot.status();
  }
  made.slot = *slot;
  by_base_.emplace(base, made);
  return Status::ok();
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

Status DeviceRegistrations::publish(const Registration& made, std::uint64_t base) {
  MEMSPAN_TRY_ASSIGN(const std::string text,
                     device_->share_pointer(reinterpret_cast<const void*>(base),
                                            made.bytes),  // NOLINT: an address
                     fmt::format("registering device memory at {:#x}", base));
  std::vector<Fd> descriptors;
  MEMSPAN_TRY_ASSIGN(descriptors.emplace_back(), descriptor_of(text), "registering device memory");
  return member_.broker().publish(record_.allocation_name(made.number), std::move(descriptors));
}

bool DeviceRegistrations::remove(std::uint64_t base) {
  const auto found = by_base_.find(base);
  if (found == by_base_.end()) return false;
  if (--found->second.count > 0) return true;
  registrations_.remove_allocation(found->second.slot);
  member_.broker().retract(record_.allocation_name(found->second.number));
  by_base_.erase(found);
  return true;
}

}  // namespace memspan::transfer
