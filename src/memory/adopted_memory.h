// SPDX-License-Identifier: Apache-2.0
// Memory that a program has allocated in whatever way, whose private pages were replaced by shared
// ones in place: addresses and bytes stay, and other processes can map them.
//
//   the program's     │....│#### the range ######│...│     whole pages that the range touches
//   the memory  │ hole│....│#####################│...│     a memfd; the hole puts what is at a
//                                                          multiple of 2 MiB there at one here
//
// What else lies on the first and the last page moves along, which nobody notices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/fd.h"
#include "core/status.h"
#include "device/pages.h"

namespace memspan {

// Gives the range private pages again when it ends. Move-only value; one thread at a time.
class AdoptedMemory {
 public:
  // Other threads may read and write the range meanwhile; a write waits for some milliseconds at
  // most. Takes all of its memory, and 64 MiB more while it works.
  //
  // kInvalidArgument names what in the range cannot be adopted: nothing is mapped there, or memory
  // that is of a file, shared, locked, a stack, or that may not be read and written. kNotSupported:
  // writers cannot be held off here. kOutOfMemory, kSystem. After a failure the range is as before
  // (but shared still where there is no memory to give it private pages again).
  static Result<AdoptedMemory> adopt(std::byte* base, std::size_t bytes);
  AdoptedMemory(AdoptedMemory&& other) noexcept;
  AdoptedMemory& operator=(AdoptedMemory&&) = delete;
  ~AdoptedMemory();

  // The pages, [first page, end of the last one).
  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return end_; }
  // For other processes: base of the range is at byte lead_of(base) of the memory.
  Result<Fd> duplicate() const { return pages_.duplicate(); }
  static std::size_t lead_of(std::uint64_t base) { return base % kHugePage; }

  // Whether all of it stands where it stood, as it does unless the program has unmapped, moved or
  // replaced some.
  Result<bool> is_in_place() const;
  // Gives what still stands there private pages with the same bytes, and the memory back, also
  // where other processes have it mapped. What the program has moved elsewhere stays as it is. What
  // other processes write meanwhile may be lost. After a failure the rest stays shared, with its
  // bytes.
  Status give_back();
  // It stays as it is, also when this ends.
  void leave() { is_given_back_ = true; }

 private:
  AdoptedMemory(std::uint64_t begin, std::uint64_t end, Pages pages)
      : begin_(begin), end_(end), pages_(std::move(pages)) {}
  std::uint64_t begin_;
  std::uint64_t end_;
  Pages pages_;
  bool is_given_back_ = false;
};

}  // namespace memspan
