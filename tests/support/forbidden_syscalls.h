/* SPDX-License-Identifier: Apache-2.0
 * A seccomp filter as containers have one: the kernel refuses the named system calls of this thread
 * and of all that it starts from now on. */
#ifndef MEMSPAN_TESTS_SUPPORT_FORBIDDEN_SYSCALLS_H
#define MEMSPAN_TESTS_SUPPORT_FORBIDDEN_SYSCALLS_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

enum { kMostForbidden = 60 };

/* Each of the calls fails with `error` (EPERM, ENOSYS). 0, or an errno. */
static inline int forbid_syscalls(const long* numbers, size_t count, int error) {
  struct sock_filter filter[kMostForbidden + 3];
  if (count > kMostForbidden) return E2BIG;
  const struct sock_filter load = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0); /* the call's number */
  const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const struct sock_filter refuse =
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)error & SECCOMP_RET_DATA));
  filter[0] = load;
  for (size_t i = 0; i < count; ++i) {
    const struct sock_filter compare =
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)numbers[i], (unsigned char)(count - i), 0);
    filter[1 + i] = compare;
  }
  filter[1 + count] = allow;
  filter[2 + count] = refuse;
  const struct sock_fprog program = {(unsigned short)(count + 3), filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ? 0 : errno;
}

#endif
