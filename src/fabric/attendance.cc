// SPDX-License-Identifier: Apache-2.0
#include "fabric/attendance.h"

#include <fmt/format.h>

#include "world/futex.h"

namespace memspan {
namespace {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

std::size_t bytes_for(std::uint32_t ranks) {
  return (std::size_t{ranks} + 1) * sizeof(std::uint32_t);
}

}  // namespace

Result<Attendance> Attendance::create(std::uint32_t ranks) {
  auto pages = Pages::create(bytes_for(ranks), "memspan-attendance");
  if (!pages.is_ok()) return pages.status();
  return map(std::move(pages).value(), ranks);
}

Result<Attendance> Attendance::open(Fd descriptor, std::uint32_t ranks) {
  auto pages = Pages::adopt(std::move(descriptor));
  if (!pages.is_ok()) return pages.status();
  return map(std::move(pages).value(), ranks);
}

Result<Attendance> Attendance::map(Pages pages, std::uint32_t ranks) {
  if (pages.bytes() < bytes_for(ranks))
    return Status(Code::kInvalidArgument, fmt::format("an attendance of {} bytes, {} are needed",
                                                      pages.bytes(), bytes_for(ranks)));
  auto range = Reservation::make(pages.bytes(), nullptr);
  if (!range.is_ok()) return range.status();
  MEMSPAN_PASS(range->map(0, pages, 0, pages.bytes()));
  return Attendance(std::move(pages), std::move(range).value());
}

void Attendance::mark(std::uint32_t rank, bool is_there) {
  word(rank + 1).store(is_there ? 1 : 0, std::memory_order_release);  // pairs with is_marked()
  count_change();
}

bool Attendance::is_marked(std::uint32_t rank) const {
  return word(rank + 1).load(std::memory_order_acquire) != 0;
}

std::uint32_t Attendance::changes() const {
  return word(0).load(std::memory_order_acquire);
}

void Attendance::count_change() {
  word(0).fetch_add(1, std::memory_order_acq_rel);
  futex_wake_all(word(0));
}

void Attendance::await_change(std::uint32_t changes, Deadline deadline) {
  futex_wait(word(0), changes, deadline.remaining());
}

}  // namespace memspan
