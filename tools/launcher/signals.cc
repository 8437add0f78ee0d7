// SPDX-License-Identifier: Apache-2.0
#include "launcher/signals.h"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstring>

namespace memspan::launcher {
namespace {

bool is_ignored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

std::string describe_signal(int number) {
  return fmt::format("{} ({})", number, strsignal(number));
}

bool ends_a_job(int number) {
  return number == SIGINT || number == SIGQUIT || number == SIGTERM || number == SIGHUP;
}

Result<Signals> Signals::block() {
  // A parent that ignores SIGCHLD would have the kernel reap our children before we see them end.
  // SIGCONT continues us in any case, and then the processes.
  for (const int number : {SIGCHLD, SIGCONT}) std::signal(number, SIG_DFL);
  sigset_t handled;
  sigemptyset(&handled);
  for (int number : {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT})
    if (!is_ignored(number)) sigaddset(&handled, number);  // blocked ones arrive though ignored
  Fd descriptor(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor.is_valid()) return Status::from_errno("signalfd");
  sigset_t blocked = handled;
  sigaddset(&blocked, SIGPIPE);  // a write to a closed pipe is an error there, not the end of us
  sigaddset(&blocked, SIGTTOU);  // a message to the terminal does not stop us (stty tostop)
  if (sigprocmask(SIG_SETMASK, &blocked, nullptr) != 0) return Status::from_errno("sigprocmask");
  return Signals(std::move(descriptor));
}

std::optional<int> Signals::next() const {
  signalfd_siginfo info{};
  if (read(descriptor_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info))
    return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace memspan::launcher
