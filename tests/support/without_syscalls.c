/* SPDX-License-Identifier: Apache-2.0
 * Runs a command as in a container whose seccomp profile refuses system calls:
 *
 *   without_syscalls [--errno EPERM|ENOSYS|EACCES] NAME[,NAME...] COMMAND [ARGUMENT...]
 *
 * NAME is a system call, `docker` for those of Docker's default profile, or `modern` for calls that
 * older kernels and sandboxes lack. The exit code is the command's; 125 if the filter cannot be
 * set, 127 if the command cannot be started. */
#define _GNU_SOURCE
#include "support/forbidden_syscalls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAMED(call) \
  { #call, SYS_##call }
static const struct {
  const char* name;
  long number;
} kCalls[] = {
    NAMED(close_range),     NAMED(epoll_pwait2),      NAMED(faccessat2),
    NAMED(fallocate),       NAMED(get_mempolicy),     NAMED(getcpu),
    NAMED(ioprio_set),      NAMED(madvise),           NAMED(mbind),
    NAMED(membarrier),      NAMED(memfd_create),      NAMED(mlock),
    NAMED(mount),           NAMED(move_pages),        NAMED(name_to_handle_at),
    NAMED(openat2),         NAMED(perf_event_open),   NAMED(pidfd_getfd),
    NAMED(pidfd_open),      NAMED(pidfd_send_signal), NAMED(prctl),
    NAMED(process_madvise), NAMED(process_vm_readv),  NAMED(process_vm_writev),
    NAMED(ptrace),          NAMED(sched_setaffinity), NAMED(set_mempolicy),
    NAMED(unshare),         NAMED(userfaultfd),
};
/* What Docker's default profile refuses without further capabilities, of what programs that share
 * memory may call. */
static const char kDocker[] =
    "get_mempolicy,mbind,mount,move_pages,name_to_handle_at,perf_event_open,set_mempolicy,unshare,"
    "userfaultfd";

/* What older kernels lack, and gVisor and strict profiles refuse. */
static const char kModern[] =
    "close_range,epoll_pwait2,faccessat2,membarrier,openat2,pidfd_getfd,pidfd_open,"
    "pidfd_send_signal,process_madvise,process_vm_readv,process_vm_writev,userfaultfd";

static int is_named(const char* name, const char* names, size_t length) {
  return strncmp(name, names, length) == 0 && name[length] == '\0';
}

static int add_calls(const char* names, long* numbers, size_t* count) {
  while (*names != '\0') {
    const size_t length = strcspn(names, ",");
    if (is_named("docker", names, length)) {
      if (add_calls(kDocker, numbers, count) != 0) return -1;
    } else if (is_named("modern", names, length)) {
      if (add_calls(kModern, numbers, count) != 0) return -1;
    } else {
      size_t i = 0;
      while (i < sizeof kCalls / sizeof *kCalls && !is_named(kCalls[i].name, names, length)) ++i;
      if (i == sizeof kCalls / sizeof *kCalls || *count == kMostForbidden) {
        fprintf(stderr, "without_syscalls: unknown system call \"%.*s\"\n", (int)length, names);
        return -1;
      }
      numbers[(*count)++] = kCalls[i].number;
    }
    names += length + (names[length] == ',');
  }
  return 0;
}

static int error_named(const char* name) {
  if (strcmp(name, "EPERM") == 0) return EPERM;
  if (strcmp(name, "ENOSYS") == 0) return ENOSYS;
  return strcmp(name, "EACCES") == 0 ? EACCES : 0;
}

int main(int count, char** words) {
  int error = EPERM;
  int at = 1;
  if (count > 2 && strcmp(words[at], "--errno") == 0) {
    error = error_named(words[at + 1]);
    at += 2;
  }
  if (error == 0 || count < at + 2) {
    fprintf(stderr,
            "usage: without_syscalls [--errno EPERM|ENOSYS|EACCES] NAME[,NAME...] COMMAND "
            "[ARGUMENT...]\n");
    return 125;
  }
  long numbers[kMostForbidden];
  size_t forbidden = 0;
  if (add_calls(words[at], numbers, &forbidden) != 0) return 125;
  const int failure = forbid_syscalls(numbers, forbidden, error);
  if (failure != 0) {
    fprintf(stderr, "without_syscalls: seccomp: %s\n", strerror(failure));
    return 125;
  }
  execvp(words[at + 1], words + at + 1);
  fprintf(stderr, "without_syscalls: cannot start \"%s\": %s\n", words[at + 1], strerror(errno));
  return 127;
}
