// SPDX-License-Identifier: Apache-2.0
// A reserved range of virtual addresses of the host, with nothing or with shared pages mapped into
// it.
#pragma once

#include <map>
#include <utility>

#include "core/pages.h"
#include "device/memory.h"

namespace memspan::inline device {

class HostMemory final : public DeviceMemory {
 public:
  explicit HostMemory(Pages pages) : pages_(std::move(pages)) {}
  std::size_t bytes() const override { return pages_.bytes(); }
  Result<Fd> duplicate() const override { return pages_.duplicate(); }
  const Pages& pages() const { return pages_; }

 private:
  const Pages pages_;
};

// Owns the range and unmaps it when destroyed. Move-only value; one thread at a time.
class Reservation final : public DeviceRange {
 public:
  // Reserves `bytes` (whole pages) at `wanted` if that range is free, else anywhere. A range of 2
  // MiB or more then begins at a multiple of 2 MiB, so that huge pages can be mapped. `wanted` may
  // be null. Costs no memory.
  static Result<Reservation> make(std::size_t bytes, void* wanted);
  // Reserves addresses anywhere and maps all of `pages` there.
  static Result<Reservation> of(const Pages& pages);
  // Reserves `bytes` at `wanted` and nowhere else: kUnavailable names the mapping in that place.
  static Result<Reservation> make_at(std::size_t bytes, void* wanted);
  Reservation(Reservation&& other) noexcept { *this = std::move(other); }
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation() override;

  std::byte* base() const override { return base_; }
  std::size_t bytes() const override { return bytes_; }
  Status map(std::size_t at, const DeviceMemory& memory, std::size_t bytes) override {
    return map(at, static_cast<const HostMemory&>(memory).pages(), 0, bytes);
  }

  // Maps bytes [offset, offset + bytes) of `pages` at base() + `at`, shared and writable.
  Status map(std::size_t at, const Pages& pages, std::size_t offset, std::size_t bytes);
  // Unmaps these bytes; the range stays reserved.
  Status unmap(std::size_t at, std::size_t bytes) override;
  // Makes the pages of these bytes outlive this, as private memory with their bytes at the end, or
  // zeros if memory is short. The caller unmaps them.
  Status keep(std::size_t at, std::size_t bytes);

 private:
  Reservation(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {}
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  std::map<std::size_t, std::size_t> kept_;  // begin and end, whole pages, apart
};

}  // namespace memspan::inline device
