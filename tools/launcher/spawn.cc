// SPDX-License-Identifier: Apache-2.0
// The child runs `enter_program` in the launcher's memory while the launcher waits (CLONE_VM and
// CLONE_VFORK, as posix_spawn does): no page tables are copied. So the child makes system calls
// only, and allocates nothing. The reason of a failure comes back through a pipe, which the exec
// closes: under TSan and in QEMU's user mode the child has a copy of our memory, and QEMU does not
// wait.
#include "launcher/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "command_line/arguments.h"
#include "core/fd.h"
#include "core/mutex.h"

namespace memspan::launcher {
namespace {

constexpr std::size_t kStackBytes = std::size_t{64} << 10;

#ifdef MEMSPAN_THREAD_SANITIZER_
// TSan's clone() ends the tracking in the child of a process with threads, so also in us where the
// memory is the same.
constexpr int kChildSharesMemory = 0;
#else
constexpr int kChildSharesMemory = CLONE_VM;
#endif

// A failure in the child, as it comes through the pipe: `what` points into the program.
struct ChildFailure {
  int error = 0;  // of errno
  const char* what = nullptr;
};

struct Orders {
  const char* program;
  char* const* arguments;
  char* const* shell_arguments;  // for a script that names no interpreter
  char* const* environment;
  const char* folder;  // null: ours
  const Start* start;
  const rlimit* open_files;
  const cpu_set_t* cores;  // null: not bound
  pid_t launcher;
  int failures;  // the end of the pipe that the child writes to
};

int give_up(const Orders& orders, const char* what) {
  const ChildFailure failure{errno, what};
  // If this fails, the exit code shows the failure.
  [[maybe_unused]] const ssize_t told = write(orders.failures, &failure, sizeof failure);
  return 127;
}

bool redirect(int from, int to) {
  return from < 0 || dup2(from, to) == to;
}

// In the child; returns only when something failed. AddressSanitizer does not know its stack.
__attribute__((no_sanitize("address"))) int enter_program(void* argument) {
  Orders& orders = *static_cast<Orders*>(argument);
  const Start& start = *orders.start;
  if (setpgid(0, 0) != 0) return give_up(orders, "setpgid");
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return give_up(orders, "prctl");
  if (getppid() != orders.launcher) return give_up(orders, "the launcher is gone");
  if (orders.cores != nullptr && sched_setaffinity(0, sizeof *orders.cores, orders.cores) != 0)
    return give_up(orders, "binding to a core");
  if (!redirect(start.input, STDIN_FILENO) || !redirect(start.output, STDOUT_FILENO) ||
      !redirect(start.errors, STDERR_FILENO))
    return give_up(orders, "redirecting");
  for (int descriptor : start.inherited)
    if (fcntl(descriptor, F_SETFD, 0) != 0) return give_up(orders, "handing over a descriptor");
  if (setrlimit(RLIMIT_NOFILE, orders.open_files) != 0) return give_up(orders, "setrlimit");
  if (orders.folder != nullptr && chdir(orders.folder) != 0)
    return give_up(orders, "entering its folder");
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(orders.program, orders.arguments, orders.environment);
  if (errno == ENOEXEC) execve("/bin/sh", orders.shell_arguments, orders.environment);
  return give_up(orders, "starting it");
}

}  // namespace

Spawner::Spawner(std::string program, std::vector<std::string> arguments, std::string folder,
                 const rlimit& open_files)
    : program_(std::move(program)),
      arguments_(std::move(arguments)),
      folder_(std::move(folder)),
      open_files_(open_files),
      stack_(std::make_unique<std::byte[]>(kStackBytes)) {}

Result<pid_t> Spawner::spawn(const Start& start) {
  std::vector<char*> arguments = command_line::pointers_to(arguments_);
  std::vector<char*> shell_arguments = arguments;
  shell_arguments[0] = const_cast<char*>(program_.c_str());
  shell_arguments.insert(shell_arguments.begin(), const_cast<char*>("sh"));
  std::vector<char*> environment = command_line::pointers_to(start.environment);
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (start.core >= 0) CPU_SET(start.core, &mask);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::from_errno("making a pipe for a process");
  const Fd failures(ends[0]);
  Fd childs_end(ends[1]);
  Orders orders{program_.c_str(),
                arguments.data(),
                shell_arguments.data(),
                environment.data(),
                folder_.empty() ? nullptr : folder_.c_str(),
                &start,
                &open_files_,
                start.core >= 0 ? &mask : nullptr,
                getpid(),
                childs_end.get()};
  pid_t pid = clone(enter_program, stack_.get() + kStackBytes,  // it grows down
                    kChildSharesMemory | CLONE_VFORK | SIGCHLD, &orders);
  if (pid < 0) return Status::from_errno("starting a process");
  childs_end.reset();
  ChildFailure failure;
  ssize_t bytes = 0;
  do bytes = read(failures.get(), &failure, sizeof failure);
  while (bytes < 0 && errno == EINTR);
  if (bytes != static_cast<ssize_t>(sizeof failure)) return pid;
  waitpid(pid, nullptr, 0);
  const Status reason = Status::from_errno(failure.what, failure.error);
  return Status(Code::kNotFound,
                fmt::format("cannot start \"{}\": {}", program_, reason.message()));
}

}  // namespace memspan::launcher
