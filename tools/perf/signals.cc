// SPDX-License-Identifier: Apache-2.0
#include "perf/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <utility>

namespace memspan::perf {

Result<ForwardedSignals> ForwardedSignals::block() {
  sigset_t handled;
  ::sigemptyset(&handled);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    ::sigaction(number, nullptr, &action);
    // nohup(1) and shells in the background ignore some.
    if (action.sa_handler == SIG_DFL) ::sigaddset(&handled, number);
  }
  Fd descriptor(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor.is_valid()) return Status::from_errno("signalfd");
  sigset_t original;
  ::sigprocmask(SIG_BLOCK, &handled, &original);
  return ForwardedSignals(std::move(descriptor), original);
}

ForwardedSignals::ForwardedSignals(ForwardedSignals&& other) noexcept
    : descriptor_(std::move(other.descriptor_)),
      original_(other.original_),
      first_(std::exchange(other.first_, 0)) {}

ForwardedSignals::~ForwardedSignals() {
  if (!descriptor_.is_valid()) return;  // moved from
  ::sigprocmask(SIG_SETMASK, &original_, nullptr);
  if (first_ != 0) ::raise(first_);
}

void ForwardedSignals::forward_to(pid_t process) {
  signalfd_siginfo info = {};
  while (::read(descriptor_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const auto number = static_cast<int>(info.ssi_signo);
    if (first_ == 0) first_ = number;
    if (info.ssi_code != SI_KERNEL) ::kill(process, number);
  }
}

}  // namespace memspan::perf
