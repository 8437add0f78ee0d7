// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/ledger.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include "core/check.h"

namespace memspan::transfer {

using namespace ledger;

Result<LedgerPages> LedgerPages::create() {
  MEMSPAN_TRY_ASSIGN(Pages pages, Pages::create(kBytes, "memspan-ledger"), "making a ledger");
  MEMSPAN_TRY_ASSIGN(Reservation place, Reservation::make(kBytes, nullptr), "making a ledger");
  MEMSPAN_TRY(place.map(0, pages, 0, kBytes), "making a ledger");
  return LedgerPages(std::move(pages), std::move(place));
}

Result<LedgerPages> LedgerPages::open(Fd descriptor) {
  MEMSPAN_TRY_ASSIGN(Pages pages, Pages::adopt(std::move(descriptor)), "opening a ledger");
  if (pages.bytes() < kBytes)
    return Status(Code::kInvalidArgument,
                  fmt::format("a ledger of {} bytes instead of {}", pages.bytes(), kBytes));
  MEMSPAN_TRY_ASSIGN(Reservation place, Reservation::make(kBytes, nullptr), "opening a ledger");
  MEMSPAN_TRY(place.map(0, pages, 0, kBytes), "opening a ledger");
  if (mprotect(place.base(), kCountersAt, PROT_READ) != 0)
    return Status::from_errno("protecting a ledger");
  LedgerPages opened(std::move(pages), std::move(place));
  if (opened.header().format.load(std::memory_order_acquire) != kFormat)
    return Status(Code::kInvalidArgument, "a ledger of another format");
  return opened;
}

Result<Ledger> Ledger::create() {
  auto pages = LedgerPages::create();
  if (!pages.is_ok()) return pages.status();
  Ledger made(std::move(pages).value());
  auto& header = *made.pages_.at<Header>(0);
  header.state.store(static_cast<std::uint64_t>(State::kOpen), std::memory_order_relaxed);
  header.format.store(kFormat, std::memory_order_release);
  return made;
}

std::uint32_t Ledger::add(const Range& range) {
  MEMSPAN_CHECK(room() > 0);
  std::uint32_t index = 0;
  if (free_.empty()) {
    index = used_++;
    pages_.at<Header>(0)->slots_used.store(used_, std::memory_order_release);
  } else {
    index = free_.back();
    free_.pop_back();
  }
  // Release, each: whoever reads one of these reads the stamp of 0 that was before them, or a later
  // one, when it looks again (LedgerView::read).
  Slot& slot = pages_.at<Slot>(kSlotsAt)[index];
  slot.base.store(range.base, std::memory_order_release);
  slot.bytes.store(range.bytes, std::memory_order_release);
  slot.tag.store(std::uint64_t{range.slice} << 32 | range.group, std::memory_order_release);
  slot.stamp.store(++last_stamp_, std::memory_order_release);
  note_change(index);
  return index;
}

void Ledger::remove(std::uint32_t slot) {
  MEMSPAN_CHECK(slot < used_);
  pages_.at<Slot>(kSlotsAt)[slot].stamp.store(0, std::memory_order_release);
  note_change(slot);
  free_.push_back(slot);
}

void Ledger::note_change(std::uint32_t slot) {
  auto& version = pages_.at<Header>(0)->version;
  const std::uint64_t number = version.load(std::memory_order_relaxed);
  pages_.at<Change>(kChangesAt)[number % kChanges].store(slot, std::memory_order_release);
  version.store(number + 1, std::memory_order_release);
}

void Ledger::close() {
  pages_.at<Header>(0)->state.store(static_cast<std::uint64_t>(State::kClosed),
                                    std::memory_order_release);
}

}  // namespace memspan::transfer
