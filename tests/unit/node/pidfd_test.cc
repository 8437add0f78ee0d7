// SPDX-License-Identifier: Apache-2.0
#include "node/process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <string>
#include <thread>

#include "net/unix_socket.h"
#include "support/forbidden_syscalls.h"
#include "support/needs.h"

namespace memspan {
namespace {

constexpr int kLongMs = 60000;
constexpr long kPidfdOpen = SYS_pidfd_open;

bool has_event(const Fd& descriptor, int within_ms) {
  pollfd polled{descriptor.get(), POLLIN, 0};
  return poll(&polled, 1, within_ms) == 1;
}

// Sends its own end, and leaves a child that ends with the test.
[[noreturn]] void run_child(const Fd& to, bool has_pidfd) {
  if (!has_pidfd && forbid_syscalls(&kPidfdOpen, 1, EPERM) != 0) _exit(1);
  const auto end = open_own_end();
  if (!end.is_ok()) _exit(1);
  const pid_t child = fork();
  if (child == 0) alarm(kLongMs / 1000);
  if (child != 0 && !unix_send(to, std::to_string(child), {end->get()}).is_ok()) _exit(1);
  while (true) pause();
}

TEST(OwnEndTest, ShowsTheEndOfTheProcessOnly) {
  MEMSPAN_NEEDS("seccomp");
  for (const bool has_pidfd : {true, false}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    const Fd mine(ends[0]), theirs(ends[1]);
    const pid_t process = fork();
    if (process == 0) run_child(theirs, has_pidfd);
    auto message = unix_receive(mine, Deadline::after(std::chrono::milliseconds(kLongMs)));
    ASSERT_TRUE(message.is_ok()) << message.status().to_string();
    const Fd end = std::move(message->descriptors.at(0));
    EXPECT_FALSE(has_event(end, 0));
    kill(process, SIGSTOP);
    EXPECT_FALSE(has_event(end, 0)) << "a stopped process is not gone";
    kill(process, SIGKILL);
    EXPECT_TRUE(has_event(end, kLongMs)) << (has_pidfd ? "with a pidfd" : "with a pipe");
    kill(std::stoi(message->bytes), SIGKILL);
    waitpid(process, nullptr, 0);
  }
}

TEST(ProcessEndTest, AZombieHasEnded) {
  MEMSPAN_NEEDS("seccomp");
  const pid_t process = fork();
  while (process == 0) pause();
  std::thread([process] {
    ASSERT_EQ(forbid_syscalls(&kPidfdOpen, 1, EPERM), 0);
    EXPECT_FALSE(has_ended(process));
    kill(process, SIGKILL);
    siginfo_t info{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOWAIT), 0);
    EXPECT_TRUE(has_ended(process));
    waitpid(process, nullptr, 0);
    EXPECT_TRUE(has_ended(process));
  }).join();
}

}  // namespace
}  // namespace memspan
