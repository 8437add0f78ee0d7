// SPDX-License-Identifier: Apache-2.0
// Who has a member's memory mapped: a page of the member's own in which everybody else says so. It
// is how a join knows that the others' loads and stores reach it, and a leave that they do not any
// more, without a word over the store.
//
//   | changes | rank 0 | rank 1 | ...     32 bits each; a member that died may leave its mark
#pragma once

#include <atomic>
#include <cstdint>

#include "core/clock.h"
#include "core/fd.h"
#include "core/status.h"
#include "device/pages.h"
#include "device/reservation.h"

namespace memspan {

// Owns its mapping. Move-only; thread-safe.
class Attendance {
 public:
  static Result<Attendance> create(std::uint32_t ranks);
  // Another member's, from duplicate(). kInvalidArgument when it is too small for so many.
  static Result<Attendance> open(Fd descriptor, std::uint32_t ranks);
  Result<Fd> duplicate() const { return pages_.duplicate(); }

  // What was done before is seen by who sees the mark.
  void mark(std::uint32_t rank, bool is_there);
  bool is_marked(std::uint32_t rank) const;

  // For who waits: the number of changes, and until it is another one or the deadline passes.
  std::uint32_t changes() const;
  void await_change(std::uint32_t changes, Deadline deadline);
  void count_change();

 private:
  Attendance(Pages pages, Reservation range) : pages_(std::move(pages)), range_(std::move(range)) {}
  static Result<Attendance> map(Pages pages, std::uint32_t ranks);
  std::atomic<std::uint32_t>& word(std::uint32_t index) const {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(range_.base())[index];
  }

  Pages pages_;
  Reservation range_;
};

}  // namespace memspan
