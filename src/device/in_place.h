// SPDX-License-Identifier: Apache-2.0
// Replaces pages by others with the same bytes at the same address: private by shared ones, so that
// other processes can map them, and the reverse.
//
//   hold writers ─► copy ─► mmap(MAP_FIXED) or mremap(MREMAP_FIXED) ─► let writers go
//
// The kernel replaces a mapping in one step: no thread ever finds a gap. A process that is killed
// in the middle leaves nothing behind, because the pages have no name.
#pragma once

#include "core/pages.h"
#include "core/status.h"

namespace memspan::inline device {

// Holds off writers: threads of this process that write to some pages wait while other pages
// replace these.
//
// The kernel's userfaultfd write-protects the pages and makes writers wait in their page fault. The
// faults get no answer: writers are woken once the pages have been replaced, fault again, and find
// the new pages. Readers are not held off. A process without CAP_SYS_PTRACE (if
// vm.unprivileged_userfaultfd is 0) can hold off only its own instructions. A system call that
// writes to held pages, such as read(), fails with EFAULT. Writes by physical address are not held
// off: O_DIRECT, io_uring's registered buffers, devices.
//
// Move-only value; one thread at a time. Release pages by let_go(), not by the destructor.
class WriteHold {
 public:
  // kNotSupported names the reason.
  static Result<WriteHold> make();

  // Makes writers to [base, base + bytes) wait from its return until let_go(). The range is whole
  // pages of anonymous or of shared memory. Returns 0, or an error number if nothing is held. This
  // and let_go() write only to this thread's stack and errno. Their caller must also write nowhere
  // else: it would wait for itself.
  int hold(std::byte* base, std::size_t bytes) const;
  // Lets writers continue, in the pages that were mapped over the held ones or in the held ones.
  void let_go(std::byte* base, std::size_t bytes) const;

 private:
  WriteHold(Fd faults, bool needs_pages) : faults_(std::move(faults)), needs_pages_(needs_pages) {}
  Fd faults_;
  bool needs_pages_;  // the kernel does not protect missing anonymous pages
};

// ---- steps. They make system calls and touch only the stack, errno and their arguments. No
// sanitizer checks the bytes. They return 0 or an error number.

// Copies all of [from, from + bytes) to the descriptor's memory at `offset`, and back.
int write_to_memory(int descriptor, const std::byte* from, std::size_t bytes, std::size_t offset);
int read_from_memory(int descriptor, std::byte* to, std::size_t bytes, std::size_t offset);
// Maps whole pages of the descriptor's memory, shared, over the mapping at `place`.
int map_over(std::byte* place, std::size_t bytes, int descriptor, std::size_t offset);
// Moves the mapping at `from` over the mapping at `place`.
int move_over(std::byte* place, std::size_t bytes, std::byte* from);

// ---- the whole, with writers held off: no write of another thread is lost. A piece of
// kPieceInPlace takes a few milliseconds; callers pass no more. The pages are whole and hold
// neither this thread's stack nor its errno. After kOutOfMemory or kSystem everything is as before.

inline constexpr std::size_t kPieceInPlace = std::size_t{4} << 20;

// Puts [offset, offset + bytes) of `pages` in the place of the private pages at `place`.
Status share_in_place(const WriteHold& hold, std::byte* place, std::size_t bytes,
                      const Pages& pages, std::size_t offset);
// Replaces these pages by private ones. `spare` has as many private pages; it is overwritten, and
// unmapped afterwards. Writes of another process to `pages` during the call may be lost.
Status unshare_in_place(const WriteHold& hold, std::byte* place, std::size_t bytes,
                        const Pages& pages, std::size_t offset, std::byte* spare);

}  // namespace memspan::inline device
