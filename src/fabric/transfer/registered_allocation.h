// SPDX-License-Identifier: Apache-2.0
// Memory that an endpoint hands out, and that its peers on the same host map.
#pragma once

#include <cstddef>
#include <utility>

#include "core/fd.h"
#include "core/status.h"
#include "device/reservation.h"

namespace memspan::transfer {

// One piece of such memory, which is not registered yet. Move-only value: its bytes are given back
// when it ends, also those that a peer has mapped.
class RegisteredAllocation {
 public:
  // kOutOfMemory when the machine cannot give so many bytes now.
  static Result<RegisteredAllocation> allocate(std::size_t bytes);
  RegisteredAllocation(RegisteredAllocation&&) noexcept = default;
  RegisteredAllocation& operator=(RegisteredAllocation&&) = delete;
  ~RegisteredAllocation();

  std::byte* base() const { return place_.base(); }
  // For handing over, once.
  Fd take_descriptor() { return std::move(descriptor_); }

 private:
  RegisteredAllocation(Fd descriptor, Reservation place)
      : descriptor_(std::move(descriptor)), place_(std::move(place)) {}
  Fd descriptor_;
  Reservation place_;
};

}  // namespace memspan::transfer
