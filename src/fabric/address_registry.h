// SPDX-License-Identifier: Apache-2.0
// The virtual-address registry: the same addresses in every process. Which ranges of the pool
// window belong to which pool is agreed in the store, with a key for each range
// (store/recipes/ranges.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/clock.h"
#include "core/status.h"
#include "device/reservation.h"
#include "fabric/member.h"

namespace memspan {

// This process's share of one pool's range: the addresses, reserved. Move-only; one thread at a
// time.
class AddressRange {
 public:
  // Takes the range of `name`, or makes it. kInvalidArgument when its users lay it out differently
  // (both are said) or the window is too small, kUnavailable when something else lies there in this
  // process.
  static Result<AddressRange> claim(std::shared_ptr<Member> member, const std::string& name,
                                    std::uint64_t bytes, const std::string& layout,
                                    Deadline deadline);
  AddressRange(AddressRange&&) noexcept = default;
  AddressRange& operator=(AddressRange&&) = delete;
  ~AddressRange();

  Reservation& reservation() { return reservation_; }
  std::byte* base() const { return reservation_.base(); }

 private:
  AddressRange(std::shared_ptr<Member> member, std::string name, Reservation reservation)
      : member_(std::move(member)), name_(std::move(name)), reservation_(std::move(reservation)) {}
  std::shared_ptr<Member> member_;  // shared with the process's other pools; null when moved from
  std::string name_;
  Reservation reservation_;
};

}  // namespace memspan
