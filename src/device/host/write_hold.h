// SPDX-License-Identifier: Apache-2.0
// Holding off writers: threads of this process that write to some pages wait, while others are put
// in the place of these pages.
//
// The kernel's userfaultfd write-protects the pages and makes writers wait in their page fault.
// Nobody answers the faults: writers are woken once the pages have been replaced, fault again, and
// find those. Readers are not held off. A process without CAP_SYS_PTRACE (where
// vm.unprivileged_userfaultfd is 0) can hold off its own instructions only: a system call that
// writes there meanwhile, like read(), fails with EFAULT. Nothing holds off what writes by physical
// address: O_DIRECT, io_uring's registered buffers, devices.
#pragma once

#include <cstddef>

#include "core/fd.h"
#include "core/status.h"

namespace memspan {

// Move-only value; one thread at a time. What is held is let go by let_go(), not by its end.
class WriteHold {
 public:
  // kNotSupported says why this process cannot.
  static Result<WriteHold> make();

  // Whoever writes to [base, base + bytes) waits from when this returns until let_go(). Whole
  // pages of anonymous or of shared memory. 0 or the error's number; nothing is held then. This
  // and let_go() write to this thread's stack and errno only, as their caller has to, too: it
  // would wait for itself.
  int hold(std::byte* base, std::size_t bytes) const;
  // Writers go on: in the pages that have been mapped over those that were held, or in these.
  void let_go(std::byte* base, std::size_t bytes) const;

 private:
  WriteHold(Fd faults, bool needs_pages) : faults_(std::move(faults)), needs_pages_(needs_pages) {}
  Fd faults_;
  bool needs_pages_;  // the kernel does not protect anonymous pages that are not there yet
};

}  // namespace memspan
