// SPDX-License-Identifier: Apache-2.0
// A range of virtual addresses that is ours, with nothing or with shared pages mapped into it.
#pragma once

#include <cstddef>
#include <map>

#include "core/status.h"
#include "device/pages.h"

namespace memspan {

// Owns the range and unmaps it when destroyed. Move-only value; one thread at a time.
class Reservation {
 public:
  // Reserves `bytes` (whole pages) at `wanted` when that range is free, else anywhere, from 2 MiB
  // on at a multiple of that, so that huge pages can be mapped. `wanted` may be null. Costs no
  // memory.
  static Result<Reservation> make(std::size_t bytes, void* wanted);
  // Reserves `bytes` at `wanted` and nowhere else: kUnavailable says what has the place.
  static Result<Reservation> make_at(std::size_t bytes, void* wanted);
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation();

  std::byte* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }

  // Maps bytes [offset, offset + bytes) of `pages` at base() + `at`, shared and writable.
  Status map(std::size_t at, const Pages& pages, std::size_t offset, std::size_t bytes);
  // Takes away what is mapped there; the range stays reserved.
  Status unmap(std::size_t at, std::size_t bytes);
  // The pages of these bytes outlive this, as private memory with the bytes that they have at the
  // end, or zeros when there is no memory for them. Whoever asked unmaps them.
  Status keep(std::size_t at, std::size_t bytes);

 private:
  Reservation(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {}
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  std::map<std::size_t, std::size_t> kept_;  // from where to where, whole pages, apart
};

}  // namespace memspan
