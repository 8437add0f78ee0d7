// SPDX-License-Identifier: Apache-2.0
#include "device/reservation.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <utility>

#include "core/environment.h"

namespace memspan {

Result<Reservation> Reservation::make(std::size_t bytes, void* wanted) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  bytes = align_up(bytes, page_size());
  void* base = MAP_FAILED;
  if (wanted != nullptr) base = mmap(wanted, bytes, PROT_NONE, kFlags | MAP_FIXED_NOREPLACE, -1, 0);
  if (base == MAP_FAILED) base = mmap(nullptr, bytes, PROT_NONE, kFlags, -1, 0);
  if (base == MAP_FAILED)
    return Status::from_errno(fmt::format("reserving {} of addresses", format_size(bytes)));
  return Reservation(static_cast<std::byte*>(base), bytes);
}

Reservation::Reservation(Reservation&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Reservation::~Reservation() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

Status Reservation::map(std::size_t at, const Pages& pages, std::size_t offset, std::size_t bytes) {
  if (at > bytes_ || bytes > bytes_ - at)
    return {Code::kInvalidArgument,
            fmt::format("mapping [{}, {}) into {} reserved bytes", at, at + bytes, bytes_)};
  void* mapped = mmap(base_ + at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                      pages.descriptor(), static_cast<off_t>(offset));
  if (mapped == MAP_FAILED)
    return Status::from_errno(fmt::format("mapping {} of shared memory", format_size(bytes)));
  return Status::ok();
}

}  // namespace memspan
