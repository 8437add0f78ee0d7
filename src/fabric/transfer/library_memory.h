// SPDX-License-Identifier: Apache-2.0
// Memory that an endpoint hands out, and that its peers on the same host map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "core/mutex.h"
#include "device/pages.h"
#include "device/reservation.h"
#include "fabric/door.h"
#include "fabric/transfer/endpoint_record.h"

namespace memspan::transfer {

// One piece of such memory, which is not registered yet. Move-only value: its bytes are given back
// when it ends, also those that a peer has mapped.
class LibrarySlice {
 public:
  // kOutOfMemory when the machine cannot give so many bytes now.
  static Result<LibrarySlice> allocate(std::size_t bytes);
  LibrarySlice(LibrarySlice&&) noexcept = default;
  LibrarySlice& operator=(LibrarySlice&&) = delete;
  ~LibrarySlice();

  std::byte* base() const { return place_.base(); }
  // As asked for.
  std::size_t bytes() const { return bytes_; }
  // For handing over.
  Result<Fd> duplicate() const { return pages_.duplicate(); }

 private:
  LibrarySlice(Pages pages, Reservation place, std::size_t bytes)
      : pages_(std::move(pages)), place_(std::move(place)), bytes_(bytes) {}
  Pages pages_;
  Reservation place_;
  std::size_t bytes_;
};

}  // namespace memspan::transfer
