// SPDX-License-Identifier: Apache-2.0
// The host as a device: its memory is pages (core/pages.h) in a reservation
// (device/reservation.h).
#pragma once

#include "core/pages.h"
#include "device/memory.h"
#include "device/reservation.h"

namespace memspan {

class HostMemory final : public DeviceMemory {
 public:
  explicit HostMemory(Pages pages) : pages_(std::move(pages)) {}
  std::size_t bytes() const override { return pages_.bytes(); }
  Result<Fd> duplicate() const override { return pages_.duplicate(); }
  const Pages& pages() const { return pages_; }

 private:
  const Pages pages_;
};

class HostRange final : public DeviceRange {
 public:
  explicit HostRange(Reservation reservation) : reservation_(std::move(reservation)) {}
  std::byte* base() const override { return reservation_.base(); }
  std::size_t bytes() const override { return reservation_.bytes(); }
  Status map(std::size_t at, const DeviceMemory& memory, std::size_t bytes) override;
  Status unmap(std::size_t at, std::size_t bytes) override { return reservation_.unmap(at, bytes); }
  // Pages from the middle, at page boundaries.
  Reservation& reservation() { return reservation_; }

 private:
  Reservation reservation_;
};

// The device of a process that has chosen no other.
Device& host_device();

}  // namespace memspan
