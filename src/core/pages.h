// SPDX-License-Identifier: Apache-2.0
// Memory without a name: a memfd, sealed against resizing, that other processes map through its
// descriptor. It vanishes with the last process that holds it, and the size of /dev/shm does not
// matter.
//
// The bytes are reserved, not taken: the kernel allocates a page at its first use, or when commit()
// asks for it.
#pragma once

#include <cstddef>

#include "core/fd.h"

namespace memspan::inline core {

// Owns the descriptor. Move-only value; const use is thread-safe.
class Pages {
 public:
  // `bytes` > 0, rounded up to whole pages. `label` shows in /proc/PID/maps.
  static Result<Pages> create(std::size_t bytes, const char* label);
  // Like create(), with 2 MiB pages that the system has set aside; `bytes` is rounded up to them.
  // kUnavailable if too few of them are free.
  static Result<Pages> create_huge(std::size_t bytes, const char* label);
  // Takes over a descriptor made by create() in another process and checks that it is sealed.
  static Result<Pages> adopt(Fd descriptor);
  // Takes over a descriptor of shared memory from another maker; grows it to `bytes` if it is
  // smaller. Its maker may shrink it, and accesses then end the process.
  static Result<Pages> adopt_unsealed(Fd descriptor, std::size_t bytes);

  std::size_t bytes() const { return bytes_; }
  // Whether it has huge pages, all of which are taken.
  bool is_huge() const;
  int descriptor() const { return descriptor_.get(); }
  Result<Fd> duplicate() const;

  // Makes the kernel allocate memory for a range now, in steps of at most kCommitStep. A shortage
  // is then an error and not a later signal. Existing pages cost little. Ask MemoryBudget first:
  // the kernel kills other processes before it refuses.
  Status commit(std::size_t offset, std::size_t bytes) const;
  static constexpr std::size_t kCommitStep = std::size_t{64} << 20;

 private:
  Pages(Fd descriptor, std::size_t bytes) : descriptor_(std::move(descriptor)), bytes_(bytes) {}
  Fd descriptor_;
  std::size_t bytes_ = 0;
};

std::size_t page_size();
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;
inline constexpr std::size_t align_up(std::size_t value, std::size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace memspan::inline core
