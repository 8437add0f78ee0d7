// SPDX-License-Identifier: Apache-2.0
// A reserved range of virtual addresses, with nothing or with shared pages mapped into it.
#pragma once

#include <map>

#include "core/pages.h"
#include "core/status.h"

namespace memspan {

// Owns the range and unmaps it when destroyed. Move-only value; one thread at a time.
class Reservation {
 public:
  // Reserves `bytes` (whole pages) at `wanted` if that range is free, else anywhere. A range of 2
  // MiB or more then begins at a multiple of 2 MiB, so that huge pages can be mapped. `wanted` may
  // be null. Costs no memory.
  static Result<Reservation> make(std::size_t bytes, void* wanted);
  // Reserves `bytes` at `wanted` and nowhere else: kUnavailable names the mapping in that place.
  static Result<Reservation> make_at(std::size_t bytes, void* wanted);
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation();

  std::byte* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }

  // Maps bytes [offset, offset + bytes) of `pages` at base() + `at`, shared and writable.
  Status map(std::size_t at, const Pages& pages, std::size_t offset, std::size_t bytes);
  // Unmaps these bytes; the range stays reserved.
  Status unmap(std::size_t at, std::size_t bytes);
  // Makes the pages of these bytes outlive this, as private memory with their bytes at the end, or
  // zeros if memory is short. The caller unmaps them.
  Status keep(std::size_t at, std::size_t bytes);

 private:
  Reservation(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {}
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  std::map<std::size_t, std::size_t> kept_;  // begin and end, whole pages, apart
};

}  // namespace memspan
