// SPDX-License-Identifier: Apache-2.0
#include "device/reservation.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>
#include <iterator>

#include "core/environment.h"
#include "device/in_place.h"
#include "device/process_maps.h"

namespace memspan::inline device {
namespace {

constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// The first mapping that overlaps [base, base + bytes).
std::string what_lies_in(std::uint64_t base, std::uint64_t bytes) {
  std::string found = "a mapping that has been removed since";
  const auto take_first = [&found](const ProcessMapping& mapping) {
    found = mapping.to_string();
    return false;
  };
  const Status looked = look_at_mappings(base, base + bytes, take_first);
  return looked.is_ok() ? found : looked.message();
}

// Replaces them in one step, so that nothing else is ever mapped there.
void make_private(std::byte* place, std::size_t bytes) {
  constexpr int kAccess = PROT_READ | PROT_WRITE;
  void* copy = mmap(nullptr, bytes, kAccess, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy != MAP_FAILED) {
    std::memcpy(copy, place, bytes);
    if (move_over(place, bytes, static_cast<std::byte*>(copy)) == 0) return;
    munmap(copy, bytes);
  }
  static_cast<void>(mmap(place, bytes, kAccess, kFlags | MAP_FIXED, -1, 0));
}

// Reserves addresses anywhere. If the kernel gives no aligned place for a range that may have huge
// pages, this cuts one from a larger range.
void* reserve_anywhere(std::size_t bytes) {
  void* base = mmap(nullptr, bytes, PROT_NONE, kFlags, -1, 0);
  if (base == MAP_FAILED || bytes < kHugePage ||
      reinterpret_cast<std::uintptr_t>(base) % kHugePage == 0)
    return base;
  munmap(base, bytes);
  const std::size_t more = bytes + kHugePage;
  auto* const all = static_cast<std::byte*>(mmap(nullptr, more, PROT_NONE, kFlags, -1, 0));
  if (all == MAP_FAILED) return mmap(nullptr, bytes, PROT_NONE, kFlags, -1, 0);
  const auto place = reinterpret_cast<std::uintptr_t>(all);
  const std::size_t before = align_up(place, kHugePage) - place;
  if (before != 0) munmap(all, before);
  munmap(all + before + bytes, kHugePage - before);
  return all + before;
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
  if (base == MAP_FAILED) base = reserve_anywhere(bytes);
  if (base == MAP_FAILED)
    return Status::from_errno(fmt::format("reserving {} of addresses", format_size(bytes)));
  return Reservation(static_cast<std::byte*>(base), bytes);
}

Result<Reservation> Reservation::of(const Pages& pages) {
  MEMSPAN_PASS_ASSIGN(Reservation made, make(pages.bytes(), nullptr));
  MEMSPAN_PASS(made.map(0, pages, 0, pages.bytes()));
  return made;
}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(kept_, other.kept_);
  return *this;
}

Reservation::~Reservation() {
  if (base_ == nullptr) return;
  std::size_t at = 0;
  for (const auto& [begin, end] : kept_) {
    make_private(base_ + begin, end - begin);
    if (begin > at) munmap(base_ + at, begin - at);
    at = end;
  }
  if (at < bytes_) munmap(base_ + at, bytes_ - at);
}

Status Reservation::keep(std::size_t at, std::size_t bytes) {
  if (at > bytes_ || bytes > bytes_ - at)
    return {Code::kInvalidArgument,
            fmt::format("keeping [{}, {}) of {} reserved bytes", at, at + bytes, bytes_)};
  std::size_t begin = at / page_size() * page_size();
  std::size_t end = align_up(at + bytes, page_size());
  // Merges it with those that it touches.
  auto next = kept_.upper_bound(begin);
  if (next != kept_.begin() && std::prev(next)->second >= begin) --next;
  while (next != kept_.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = kept_.erase(next);
  }
  kept_.emplace(begin, end);
  return Status::ok();
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

}  // namespace memspan::inline device
