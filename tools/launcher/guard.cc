// SPDX-License-Identifier: Apache-2.0
#include "launcher/guard.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>

namespace memspan::launcher {
namespace {

// A positive word adds a group, a negative one removes it. Words are far below PIPE_BUF, so each
// arrives whole.
[[noreturn]] void watch(int pipe) {
  prctl(PR_SET_NAME, "memspan-guard");
  setsid();  // so that a signal to the launcher's whole group does not end the guard
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  std::set<pid_t> groups;
  pid_t word = 0;
  while (read(pipe, &word, sizeof word) == static_cast<ssize_t>(sizeof word)) {
    if (word > 0) groups.insert(word);
    if (word < 0) groups.erase(-word);
  }
  for (pid_t group : groups) kill(-group, SIGKILL);
  _exit(0);
}

}  // namespace

Result<Guard> Guard::start() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::from_errno("making a pipe");
  Fd reader(ends[0]);
  Fd writer(ends[1]);
  pid_t pid = fork();
  if (pid < 0) return Status::from_errno("starting the guard");
  if (pid == 0) {
    writer.reset();
    watch(reader.get());
  }
  return Guard(pid, std::move(writer));
}

Guard::Guard(Guard&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pipe_(std::move(other.pipe_)) {}

Guard::~Guard() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Guard::add(pid_t group) {
  send(group);
}
void Guard::remove(pid_t group) {
  send(-group);
}

// A failure means that the guard was killed; the job continues without it.
void Guard::send(pid_t word) {
  [[maybe_unused]] ssize_t written = write(pipe_.get(), &word, sizeof word);
}

}  // namespace memspan::launcher
