// SPDX-License-Identifier: Apache-2.0
#include "node/process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <csignal>

#include "core/environment.h"
#include "core/mutex.h"

namespace memspan::inline node {
namespace {

// One for the process, which ends once. The kernel closes the write end with the process, so
// children of fork() must not keep it open.
struct EndPipe {
  Mutex mutex;
  Fd read_end MEMSPAN_GUARDED_BY(mutex);
  Fd write_end MEMSPAN_GUARDED_BY(mutex);

  void forget_in_child() MEMSPAN_REQUIRES(mutex) {
    read_end.reset();
    write_end.reset();
  }
};

Status make_end_pipe(EndPipe& pipe) MEMSPAN_REQUIRES(pipe.mutex) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::from_errno("making a pipe");
  pipe.read_end.reset(ends[0]);
  pipe.write_end.reset(ends[1]);
  return Status::ok();
}

// "PROCESS (NAME) STATE PARENT ... THREADS ...". A first thread that has ended is a zombie while
// others run.
bool is_zombie(pid_t process) {
  constexpr std::size_t kState = 1;
  constexpr std::size_t kThreads = 18;
  const std::string text = first_line_of(fmt::format("/proc/{}/stat", process));
  const auto fields = split(std::string_view(text).substr(text.rfind(')') + 1), ' ');
  return fields.size() > kThreads && fields[kState] == "Z" &&
         (fields[kThreads] == "0" || fields[kThreads] == "1");
}

}  // namespace

Result<Fd> open_pidfd(pid_t process) {
  Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  if (!pidfd.is_valid())
    return Status::from_errno(fmt::format("pidfd_open of process {}", process));
  return pidfd;
}

Result<Fd> open_own_end() {
  if (auto pidfd = open_pidfd(getpid()); pidfd.is_ok()) return pidfd;
  EndPipe& pipe = held_at_fork<EndPipe>();
  MutexLock lock(pipe.mutex);
  if (!pipe.read_end.is_valid()) MEMSPAN_PASS(make_end_pipe(pipe));
  return duplicate(pipe.read_end.get(), "duplicating a descriptor");
}

bool has_ended(pid_t process) {
  if (kill(process, 0) != 0 && errno == ESRCH) return true;
  const auto descriptor = open_pidfd(process);
  if (!descriptor.is_ok()) return (kill(process, 0) != 0 && errno == ESRCH) || is_zombie(process);
  pollfd ended{descriptor->get(), POLLIN, 0};
  return poll(&ended, 1, 0) == 1;  // also of a zombie
}

ProcessIdentity ProcessIdentity::own() {
  struct stat info {};
  const bool is_known = stat("/proc/self/ns/pid", &info) == 0;
  return {getpid(), is_known ? static_cast<std::int64_t>(info.st_ino) : 0};
}

bool ProcessIdentity::may_be(pid_t seen) const {
  const ProcessIdentity here = own();
  const bool is_comparable = here.pid_namespace != 0 && here.pid_namespace == pid_namespace;
  return !is_comparable || process == seen;
}

}  // namespace memspan::inline node
