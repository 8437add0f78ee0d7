// SPDX-License-Identifier: Apache-2.0
#include "memory/promised_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include "core/log.h"
#include "core/thread.h"
#include "memory/budget.h"

namespace memspan::inline memory {
namespace {

constexpr std::uint64_t kMargin = std::uint64_t{1} << 30;
constexpr std::uint64_t kFastestTaking = 32;  // bytes of other programs in a nanosecond
constexpr Duration kLeastInterval = std::chrono::milliseconds(5);
constexpr Duration kMostInterval = std::chrono::seconds(1);

// A touch is noticed within 1/64 of the time since the last one. In the shortest time a program
// touches about 500 KiB page by page.
constexpr Duration kSoonest = std::chrono::microseconds(250);
constexpr int kPatience = 64;

// An eighth of the touched bytes is made ahead, and at least and at most so much: two huge pages,
// and 20 ms of work.
constexpr std::size_t kAheadPart = 8;
constexpr std::size_t kLeastAhead = 2 * kHugePage;
constexpr std::size_t kMostAhead = std::size_t{256} << 20;

std::uint64_t needed_for(std::uint64_t promised) {
  return 2 * promised + kMargin;
}

// The bytes of whole huge pages that begin before `at`.
std::size_t huge_before(const HugeRange& huge, std::size_t at) {
  return at <= huge.at ? 0 : std::min((at - huge.at) / kHugePage * kHugePage, huge.bytes);
}

}  // namespace

bool is_plentiful(std::uint64_t available, std::uint64_t promised) {
  return available >= needed_for(promised);
}

Duration plentiful_for(std::uint64_t available, std::uint64_t promised) {
  const std::uint64_t surplus = available - std::min(available, needed_for(promised));
  return std::clamp<Duration>(std::chrono::nanoseconds(surplus / kFastestTaking), kLeastInterval,
                              kMostInterval);
}

PromisedMemory::~PromisedMemory() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

Status PromisedMemory::add(std::size_t offset, std::byte* place, std::size_t bytes) {
  HugeRange huge;
  switch (huge_page_way_of({pages_, offset, place, bytes})) {
    case HugePageWay::kAdvice:
      advise_huge(place, bytes);
      break;
    case HugePageWay::kCollapse:
      huge = huge_range(place, bytes);
      break;
    case HugePageWay::kNone:
      break;
  }
  MutexLock lock(mutex_);
  if (!thread_.joinable()) {
    const SignalsBlocked blocked;
    MEMSPAN_TRY_ASSIGN(thread_, start_thread("promised memory", [this] { run(); }),
                       "promising memory");
  }
  added_.push_back({offset, place, bytes, huge});
  promised_.set(promised_.bytes() + bytes);
  changed_.notify_one();
  return Status::ok();
}

void PromisedMemory::forget() {
  MutexLock lock(mutex_);
  added_.clear();
  is_forgotten_ = true;
  promised_.set(0);
}

void PromisedMemory::run() {
  std::vector<Part> parts;
  Clock::time_point progress, again;
  Deadline next = Deadline::never();
  while (wait(parts, next)) {
    const auto now = Clock::now();
    for (Part& part : parts) {
      if (std::exchange(part.is_new, false)) {
        progress = now;
        again =
            now + kLeastInterval;  // until then the leader's claim has ended, which counts twice
      }
      if (follow(part)) progress = now;
    }
    if (now >= again) again = take_unless_plentiful(parts);
    next = Deadline::after(
        std::max(kSoonest, std::min<Duration>((now - progress) / kPatience, again - now)));
  }
}

// Publishes what is left of `parts`, waits until the time comes or the program changes something,
// and merges the changes. False: the thread ends.
bool PromisedMemory::wait(std::vector<Part>& parts, const Deadline& until) {
  MutexLock lock(mutex_);
  std::erase_if(parts, [](const Part& part) { return part.given == part.bytes; });
  if (!is_forgotten_) publish(parts);
  while (!is_ending_ && added_.empty() && (parts.empty() || !until.has_passed()))
    changed_.wait_until(mutex_, parts.empty() ? Deadline::never() : until);
  if (std::exchange(is_forgotten_, false)) parts.clear();
  parts.insert(parts.end(), added_.begin(), added_.end());
  added_.clear();
  return !is_ending_;
}

void PromisedMemory::publish(const std::vector<Part>& parts) {
  std::uint64_t promised = 0;
  for (const std::vector<Part>* some : {&parts, &std::as_const(added_)})
    for (const Part& part : *some) promised += part.bytes - part.given;
  promised_.set(promised);
}

// The end of the bytes that exist from `from` on. The position of the descriptor serves nothing
// else.
std::size_t PromisedMemory::existing(const Part& part, std::size_t from) const {
  const off_t hole = lseek(pages_.descriptor(), static_cast<off_t>(part.offset + from), SEEK_HOLE);
  if (hole < 0) return from;
  return std::min(static_cast<std::size_t>(hole) - part.offset, part.bytes);
}

// True if the program has touched more.
bool PromisedMemory::follow(Part& part) const {
  const std::size_t touched = existing(part, part.given);
  if (touched < std::min(part.given + kTouchedSign, part.bytes)) return false;
  part.given = touched;
  const std::size_t ahead = std::clamp(touched / kAheadPart, kLeastAhead, kMostAhead);
  // Not the huge page in which the program is: the kernel makes none from pages in use.
  const std::size_t next = touched + kHugePage;
  const std::size_t begin = huge_before(part.huge, next - 1);
  const std::size_t end = huge_before(part.huge, next + ahead);
  if (begin == end) return true;
  const std::size_t first = part.huge.at + begin;
  make_huge(part.place + first, end - begin, HugePageWay::kCollapse);
  const std::size_t made = existing(part, first);
  if (made < part.huge.at + end)
    part.huge = {};  // the kernel has no more
  else
    part.given = made;
  return true;
}

// Returns the time of the next look. A piece that was taken is not claimed any more at once, as
// others may wait.
Clock::time_point PromisedMemory::take_unless_plentiful(std::vector<Part>& parts) {
  const auto budget = measure_memory_budget();
  const std::uint64_t available = budget.is_ok() ? budget->available : 0;
  const std::uint64_t claimed = budget.is_ok() ? budget->claimed : 0;
  const auto again = Clock::now() + plentiful_for(available, claimed);
  if (is_plentiful(available, claimed)) return again;
  for (Part& part : parts) {
    while (part.given < part.bytes) {
      const std::size_t piece = std::min(kCommitPiece, part.bytes - part.given);
      const Status taken = pages_.commit(part.offset + part.given, piece);
      if (!taken.is_ok()) {
        log_line_limited(LogLevel::kWarn, fmt::format("promised memory: {}", taken.message()));
        return again;
      }
      part.given += piece;
      MutexLock lock(mutex_);
      if (!is_forgotten_) publish(parts);
    }
  }
  return again;
}

}  // namespace memspan::inline memory
