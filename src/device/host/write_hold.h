// SPDX-License-Identifier: Apache-2.0
// Holds off writers: threads of this process that write to some pages wait while other pages
// replace these.
//
// The kernel's userfaultfd write-protects the pages and makes writers wait in their page fault. The
// faults get no answer: writers are woken once the pages have been replaced, fault again, and find
// the new pages. Readers are not held off. A process without CAP_SYS_PTRACE (if
// vm.unprivileged_userfaultfd is 0) can hold off only its own instructions. A system call that
// writes to held pages, such as read(), fails with EFAULT. Writes by physical address are not held
// off: O_DIRECT, io_uring's registered buffers, devices.
#pragma once

#include <cstddef>

#include "core/fd.h"
#include "core/status.h"

namespace memspan {

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

}  // namespace memspan
