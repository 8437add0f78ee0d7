// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/registration_table.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include "core/check.h"
#include "core/interrupt.h"

namespace memspan::transfer {

using namespace table_layout;

Result<RegistrationPages> RegistrationPages::create() {
  MEMSPAN_TRY_ASSIGN(Pages pages, Pages::create(kBytes, "memspan-registration table"),
                     "making a registration table");
  MEMSPAN_TRY_ASSIGN(Reservation place, Reservation::make(kBytes, nullptr),
                     "making a registration table");
  MEMSPAN_TRY(place.map(0, pages, 0, kBytes), "making a registration table");
  return RegistrationPages(std::move(pages), std::move(place));
}

Result<RegistrationPages> RegistrationPages::open(Fd descriptor) {
  MEMSPAN_TRY_ASSIGN(Pages pages, Pages::adopt(std::move(descriptor)),
                     "opening a registration table");
  if (pages.bytes() < kBytes)
    return Status(
        Code::kInvalidArgument,
        fmt::format("a registration table of {} bytes instead of {}", pages.bytes(), kBytes));
  MEMSPAN_TRY_ASSIGN(Reservation place, Reservation::make(kBytes, nullptr),
                     "opening a registration table");
  MEMSPAN_TRY(place.map(0, pages, 0, kBytes), "opening a registration table");
  if (mprotect(place.base(), kCountersAt, PROT_READ) != 0)
    return Status::from_errno("protecting a registration table");
  RegistrationPages opened(std::move(pages), std::move(place));
  if (opened.header().format.load(std::memory_order_acquire) != kFormat)
    return Status(Code::kInvalidArgument, "a registration table of another format");
  return opened;
}

Result<RegistrationTable> RegistrationTable::create() {
  MEMSPAN_PASS_ASSIGN(auto pages, RegistrationPages::create());
  RegistrationTable made(std::move(pages));
  auto& header = *made.pages_.at<Header>(0);
  header.state.store(static_cast<std::uint64_t>(State::kOpen), std::memory_order_relaxed);
  header.format.store(kFormat, std::memory_order_release);
  return made;
}

std::uint32_t RegistrationTable::add(const Range& range) {
  MEMSPAN_CHECK(room() > 0);
  std::uint32_t index = 0;
  if (free_.empty()) {
    index = used_++;
    pages_.at<Header>(0)->slots_used.store(used_, std::memory_order_release);
  } else {
    index = free_.back();
    free_.pop_back();
  }
  // Release, each: a reader that sees one of these sees the earlier stamp of 0, or a later one,
  // when it looks again (RegistrationView::read).
  Slot& slot = pages_.at<Slot>(kSlotsAt)[index];
  slot.base.store(range.base, std::memory_order_release);
  slot.bytes.store(range.bytes, std::memory_order_release);
  slot.tag.store(std::uint64_t{range.allocation} << 32 | range.group, std::memory_order_release);
  slot.stamp.store(++last_stamp_, std::memory_order_release);
  note_change(index);
  return index;
}

void RegistrationTable::remove(std::uint32_t slot) {
  MEMSPAN_CHECK(slot < used_);
  pages_.at<Slot>(kSlotsAt)[slot].stamp.store(0, std::memory_order_release);
  note_change(slot);
  free_.push_back(slot);
}

void RegistrationTable::note_change(std::uint32_t slot) {
  auto& version = pages_.at<Header>(0)->version;
  const std::uint64_t number = version.load(std::memory_order_relaxed);
  pages_.at<Change>(kChangesAt)[number % kChanges].store(slot, std::memory_order_release);
  version.store(number + 1, std::memory_order_release);
}

void RegistrationTable::close() {
  pages_.at<Header>(0)->state.store(static_cast<std::uint64_t>(State::kClosed),
                                    std::memory_order_release);
}

Status check_counter(std::uint32_t counter) {
  if (counter < table_layout::kCounters) return Status::ok();
  return {Code::kInvalidArgument, fmt::format("invalid counter, which is {}: allowed are 0 to {}",
                                              counter, table_layout::kCounters - 1)};
}

void add_to_counter(table_layout::Counters& counters, std::uint32_t counter, std::uint64_t value) {
  counters.values[counter].fetch_add(value, std::memory_order_seq_cst);
  ring_counters(counters);
}

void ring_counters(table_layout::Counters& counters) {
  notify(counters.added);
}

std::uint64_t read_counter(const table_layout::Counters& counters, std::uint32_t counter) {
  return counters.values[counter].load(std::memory_order_acquire);
}

Status wait_for_counter(table_layout::Counters& counters, std::uint32_t counter,
                        std::uint64_t value, const std::atomic<bool>& is_over, Deadline deadline) {
  const auto& word = counters.values[counter];
  std::uint64_t seen = 0;
  const bool is_ended = await_event(counters.added, deadline, [&] {
    seen = word.load(std::memory_order_seq_cst);
    return seen >= value || is_over.load(std::memory_order_seq_cst);
  });
  if (seen >= value) return Status::ok();
  if (is_ended) return {Code::kUnavailable, "the endpoint is being destroyed"};
  return end_of_wait(fmt::format("timeout: counter {} is {} and not yet {}", counter, seen, value));
}

}  // namespace memspan::transfer
