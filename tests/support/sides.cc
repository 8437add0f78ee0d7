// SPDX-License-Identifier: Apache-2.0
#include "support/sides.h"

#include <smem/host/smem.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "support/free_url.h"
#include "support/processes.h"

namespace sides {
namespace {

constexpr unsigned kLongestSeconds = 90;

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  _exit(1);
}

std::string free_url() {
  char url[64];
  if (write_free_url(url, sizeof url) == 0) give_up("a port");
  return url;
}

}  // namespace

Wire::Wire() {
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) != 0) give_up("socketpair");
}

Wire::~Wire() {
  close(ends_[0]);
  close(ends_[1]);
}

void say_bytes(int end, const void* bytes, std::size_t count) {
  if (send(end, bytes, count, MSG_NOSIGNAL) != static_cast<ssize_t>(count)) give_up("saying");
}

void hear_bytes(int end, void* bytes, std::size_t count) {
  if (recv(end, bytes, count, MSG_WAITALL) != static_cast<ssize_t>(count)) give_up("hearing");
}

Side::Side(const std::function<void()>& run)
    : Side(run, [] {
        static int sides = 0;
        return ++sides;
      }()) {}

Side::Side(const std::function<void()>& run, int host) : process_(fork_process(kLongestSeconds)) {
  if (process_ != 0) return;
  join_test_host(host);
  run();
  std::exit(testing::Test::HasFailure() ? 1 : 0);
}

Side::~Side() {
  if (process_ > 0) kill();
}

void Side::signal(int number) const {
  ASSERT_EQ(::kill(process_, number), 0);
  if (number != SIGSTOP) return;
  // On a busy machine a thread of it may run on for a while.
  siginfo_t stopped = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(process_), &stopped, WSTOPPED), 0);
}

void Side::join() {
  int state = -1;
  ASSERT_EQ(waitpid(process_, &state, 0), process_);
  process_ = 0;
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << "a side ended with state " << state;
}

void Side::kill() {
  ::kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = 0;
}

Store::Store() : url_(free_url()) {
  start();
}

void Store::start() {
  host_ = std::make_unique<Side>(
      [this] {
        EXPECT_EQ(smem_create_config_store(url_.c_str()), SMEM_OK) << smem_get_last_err_msg();
        say(wire_.left(), 'r');
        pause();
      },
      0);
  hear<char>(wire_.right());
}

}  // namespace sides
