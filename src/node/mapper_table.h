// SPDX-License-Identifier: Apache-2.0
// The mapper table of a member: shared memory with a flag for each other member, set while that one
// has this member's memory mapped. A join waits until the flags are set, a leave until they are
// cleared, without the store. A member that died may leave its flag set.
//
//   | event count | rank 0 | rank 1 | ...    32 bits per flag
#pragma once

#include <atomic>
#include <cstdint>

#include "core/clock.h"
#include "core/fd.h"
#include "core/status.h"
#include "device/pages.h"
#include "device/reservation.h"
#include "node/event_count.h"

namespace memspan {

// Owns its mapping. Move-only; thread-safe.
class MapperTable {
 public:
  static Result<MapperTable> create(std::uint32_t ranks);
  // Opens another member's table, from duplicate(). kInvalidArgument if it is too small.
  static Result<MapperTable> open(Fd descriptor, std::uint32_t ranks);
  Result<Fd> duplicate() const { return pages_.duplicate(); }

  // A thread that sees the flag also sees everything this thread did before.
  void set_mapped(std::uint32_t rank, bool is_mapped);
  bool is_mapped(std::uint32_t rank) const;

  // Waits until ready(), which looks at the flags, is true. False when the deadline has passed or
  // the thread is interrupted.
  template <typename Ready>
  bool wait(const Deadline& deadline, Ready ready) {
    return await_event(changes(), deadline, ready);
  }
  // Lets all waits look again.
  void notify() { memspan::notify(changes()); }

 private:
  MapperTable(Pages pages, Reservation range)
      : pages_(std::move(pages)), range_(std::move(range)) {}
  static Result<MapperTable> map(Pages pages, std::uint32_t ranks);
  EventCount& changes() const { return *reinterpret_cast<EventCount*>(range_.base()); }
  std::atomic<std::uint32_t>& flag(std::uint32_t rank) const {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(range_.base() + sizeof(EventCount))[rank];
  }

  Pages pages_;
  Reservation range_;
};

}  // namespace memspan
