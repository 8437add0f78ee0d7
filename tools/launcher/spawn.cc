// SPDX-License-Identifier: Apache-2.0
// The child runs `enter_program` in the launcher's memory while the launcher waits (CLONE_VM and
// CLONE_VFORK, as posix_spawn does): no page tables are copied, and the reason of a failure comes
// back in a variable. So the child makes system calls only, and allocates nothing.
#include "launcher/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace memspan::launcher {
namespace {

constexpr std::size_t kStackBytes = std::size_t{64} << 10;

struct Orders {
  const char* program;
  char* const* arguments;
  char* const* shell_arguments;  // for a script that names no interpreter
  char* const* environment;
  const char* folder;  // null: ours
  const Start* start;
  const sigset_t* signals;
  const rlimit* open_files;
  const cpu_set_t* cores;  // null: not bound
  pid_t launcher;
  int error;           // errno of what failed
  const char* failed;  // and what that was
};

int give_up(Orders& orders, const char* what) {
  orders.error = errno;
  orders.failed = what;
  return 127;
}

bool take_over(int from, int to) {
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
  if (!take_over(start.input, STDIN_FILENO) || !take_over(start.output, STDOUT_FILENO) ||
      !take_over(start.errors, STDERR_FILENO))
    return give_up(orders, "redirecting");
  for (int descriptor : start.inherited)
    if (fcntl(descriptor, F_SETFD, 0) != 0) return give_up(orders, "handing over a descriptor");
  if (setrlimit(RLIMIT_NOFILE, orders.open_files) != 0) return give_up(orders, "setrlimit");
  if (orders.folder != nullptr && chdir(orders.folder) != 0)
    return give_up(orders, "entering its folder");
  sigprocmask(SIG_SETMASK, orders.signals, nullptr);
  execve(orders.program, orders.arguments, orders.environment);
  if (errno == ENOEXEC) execve("/bin/sh", orders.shell_arguments, orders.environment);
  return give_up(orders, "starting it");
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 2);
  for (const std::string& string : strings) result.push_back(const_cast<char*>(string.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

Spawner::Spawner(std::string program, std::vector<std::string> arguments, std::string folder,
                 const sigset_t& signals, const rlimit& open_files)
    : program_(std::move(program)),
      arguments_(std::move(arguments)),
      folder_(std::move(folder)),
      signals_(signals),
      open_files_(open_files),
      stack_(std::make_unique<std::byte[]>(kStackBytes)) {}

Result<pid_t> Spawner::spawn(const Start& start) {
  std::vector<char*> arguments = pointers(arguments_);
  std::vector<char*> shell_arguments = arguments;
  shell_arguments[0] = const_cast<char*>(program_.c_str());
  shell_arguments.insert(shell_arguments.begin(), const_cast<char*>("sh"));
  std::vector<char*> environment = pointers(start.environment);
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (start.core >= 0) CPU_SET(start.core, &mask);
  Orders orders{program_.c_str(),
                arguments.data(),
                shell_arguments.data(),
                environment.data(),
                folder_.empty() ? nullptr : folder_.c_str(),
                &start,
                &signals_,
                &open_files_,
                start.core >= 0 ? &mask : nullptr,
                getpid(),
                0,
                nullptr};
  // The stack grows down; a block from the allocator is aligned enough.
  pid_t pid =
      clone(enter_program, stack_.get() + kStackBytes, CLONE_VM | CLONE_VFORK | SIGCHLD, &orders);
  if (pid < 0) return Status::from_errno("starting a process");
  if (orders.failed == nullptr) return pid;
  waitpid(pid, nullptr, 0);
  Status reason = Status::from_errno(orders.failed, orders.error);
  return Status(Code::kNotFound,
                fmt::format("cannot start \"{}\": {}", program_, reason.message()));
}

}  // namespace memspan::launcher
