// SPDX-License-Identifier: Apache-2.0
// Memory that a program has allocated in any way, whose private pages were replaced by shared ones
// in place. Addresses and bytes stay, and other processes can map them.
//
//   the program's     │....│#### the range ######│...│     whole pages that the range touches
//   the memory  │ hole│....│#####################│...│     a memfd; the hole makes addresses and
//                                                          offsets equal modulo 2 MiB
//
// The other bytes on the first and the last page move along, which has no effect.
#pragma once

#include <cstdint>

#include "core/fd.h"
#include "core/pages.h"
#include "core/status.h"

namespace memspan::inline memory {

// The destructor restores private pages. Move-only value; one thread at a time.
class AdoptedMemory {
 public:
  // Other threads may read and write the range during the call; a write waits for some milliseconds
  // at most. Takes memory for all of it, and 64 MiB more while it works.
  //
  // kInvalidArgument names what in the range cannot be adopted: unmapped addresses, a file, a
  // stack, or memory that is shared, locked, or not just readable and writable. kNotSupported: this
  // system cannot hold off writers. kOutOfMemory, kSystem. After a failure the range is as before,
  // but stays shared if there is no memory for private pages.
  static Result<AdoptedMemory> adopt(std::byte* base, std::size_t bytes);
  AdoptedMemory(AdoptedMemory&& other) noexcept;
  AdoptedMemory& operator=(AdoptedMemory&&) = delete;
  ~AdoptedMemory();

  // The range of whole pages: [first page, end of the last one).
  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return end_; }
  // For other processes: the range begins at byte lead_of(its base) of the memory.
  Result<Fd> duplicate() const { return pages_.duplicate(); }
  static std::size_t lead_of(std::uint64_t base) { return base % kHugePage; }

  // Whether all of it is still in place: the program has not unmapped, moved or replaced any of it.
  Result<bool> is_in_place() const;
  // Gives the parts that are still in place private pages with the same bytes, and releases the
  // memory, even if other processes have it mapped. Parts that the program has moved stay as they
  // are. Writes of other processes during the call may be lost. After a failure the rest stays
  // shared, with its bytes.
  Status give_back();
  // Leaves the memory as it is, also after this object ends.
  void leave() { is_given_back_ = true; }

 private:
  AdoptedMemory(std::uint64_t begin, std::uint64_t end, Pages pages)
      : begin_(begin), end_(end), pages_(std::move(pages)) {}
  std::uint64_t begin_;
  std::uint64_t end_;
  Pages pages_;
  bool is_given_back_ = false;
};

}  // namespace memspan::inline memory
