// SPDX-License-Identifier: Apache-2.0
#include "device/reservation.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>

#include "core/environment.h"

namespace memspan {
namespace {

constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// The first line of /proc/self/maps that has something of [base, base + bytes).
std::string what_lies_in(std::uint64_t base, std::uint64_t bytes) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64, &from, &to) == 2 && from < base + bytes &&
        base < to)
      return line;
  }
  return "something that is gone by now";
}

}  // namespace

Result<Reservation> Reservation::make_at(std::size_t bytes, void* wanted) {
  bytes = align_up(bytes, page_size());
  void* base = mmap(wanted, bytes, PROT_NONE, kFlags | MAP_FIXED_NOREPLACE, -1, 0);
  if (base == wanted) return Reservation(static_cast<std::byte*>(base), bytes);
  const int error = errno;
  if (base != MAP_FAILED) munmap(base, bytes);  // a kernel that does not know the flag
  const auto place = reinterpret_cast<std::uint64_t>(wanted);
  if (base != MAP_FAILED || error == EEXIST)
    return Status(Code::kUnavailable,
                  fmt::format("the addresses {:#x} to {:#x} are taken here: {}", place,
                              place + bytes, what_lies_in(place, bytes)));
  return Status::from_errno(
      fmt::format("reserving {} of addresses at {:#x}", format_size(bytes), place), error);
}

Result<Reservation> Reservation::make(std::size_t bytes, void* wanted) {
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

Status Reservation::unmap(std::size_t at, std::size_t bytes) {
  if (mmap(base_ + at, bytes, PROT_NONE, kFlags | MAP_FIXED, -1, 0) == MAP_FAILED)
    return Status::from_errno(fmt::format("unmapping {} of shared memory", format_size(bytes)));
  return Status::ok();
}

}  // namespace memspan
