// SPDX-License-Identifier: Apache-2.0
// Stream sockets between two processes: a ping-pong and a stream, over TCP loopback and Unix.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>

#include "measure.h"

namespace limits {
namespace {

enum class Way { kOut, kIn };
enum class Wait { kBlock, kSpin };

// Sends or receives all n bytes; false at the end of the stream and on an error.
bool move_all(int fd, char* p, std::size_t n, Way way, Wait wait) {
  int flags = wait == Wait::kSpin ? MSG_DONTWAIT : 0;
  while (n) {
    ssize_t k = way == Way::kOut ? send(fd, p, n, flags | MSG_NOSIGNAL) : recv(fd, p, n, flags);
    if (k == 0) return false;
    if (k < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) continue;
      return false;
    }
    p += k;
    n -= static_cast<std::size_t>(k);
  }
  return true;
}

void tcp_pair(int* fd) {
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof a;
  auto* address = reinterpret_cast<sockaddr*>(&a);
  if (listener < 0 || bind(listener, address, length) || listen(listener, 1) ||
      getsockname(listener, address, &length))
    die("listen");
  fd[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd[0], address, length)) die("connect");
  fd[1] = accept(listener, nullptr, nullptr);
  close(listener);
  int one = 1;
  for (int i = 0; i < 2; i++) setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

void unix_pair(int* fd) {
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd)) die("socketpair");
}

struct Family {
  const char* name;
  void (*make_pair)(int* fd);
};

void pingpong_figure(const Family& family, Wait wait, std::size_t size, char* buffer) {
  int fd[2];
  family.make_pair(fd);
  pid_t pid = child([&] {
    close(fd[0]);
    while (move_all(fd[1], buffer, size, Way::kIn, wait))
      if (!move_all(fd[1], buffer, size, Way::kOut, wait)) break;
  });
  close(fd[1]);
  std::vector<double> v = sample([&](long n) {
    for (long i = 0; i < n; i++)
      if (!move_all(fd[0], buffer, size, Way::kOut, wait) ||
          !move_all(fd[0], buffer, size, Way::kIn, wait))
        die("socket");
  });
  close(fd[0]);
  reap(pid);
  const char* suffix = wait == Wait::kSpin ? "_pp_spin" : "_pp_block";
  report(std::string(family.name) + suffix, size, "us", scaled(v, 0.5e6));
}

// The child's side: a count, so many messages, then one byte back.
void drain(int fd, std::size_t size, char* buffer) {
  std::uint64_t n;
  while (move_all(fd, reinterpret_cast<char*>(&n), sizeof n, Way::kIn, Wait::kBlock)) {
    for (std::uint64_t i = 0; i < n; i++)
      if (!move_all(fd, buffer, size, Way::kIn, Wait::kBlock)) _exit(1);
    char c = 1;
    move_all(fd, &c, 1, Way::kOut, Wait::kBlock);
  }
}

void stream_figure(const Family& family, std::size_t size, char* buffer) {
  int fd[2];
  family.make_pair(fd);
  pid_t pid = child([&] {
    close(fd[0]);
    drain(fd[1], size, buffer);
  });
  close(fd[1]);
  std::vector<double> v = sample([&](long n) {
    auto count = static_cast<std::uint64_t>(n);
    bool ok =
        move_all(fd[0], reinterpret_cast<char*>(&count), sizeof count, Way::kOut, Wait::kBlock);
    for (long i = 0; ok && i < n; i++) ok = move_all(fd[0], buffer, size, Way::kOut, Wait::kBlock);
    char c;
    if (!ok || !move_all(fd[0], &c, 1, Way::kIn, Wait::kBlock)) die("socket");
  });
  close(fd[0]);
  reap(pid);
  report(std::string(family.name) + "_stream", size, "MB/s", rate(v, static_cast<double>(size)));
}

}  // namespace

void sock_group() {
  const std::size_t top =
      std::max(std::min(options.max_bytes, std::size_t{64} << 20), std::size_t{1} << 20);
  std::vector<char> buffer(top, 1);
  for (const Family& family : {Family{"tcp", tcp_pair}, Family{"unix", unix_pair}}) {
    for (Wait wait : {Wait::kBlock, Wait::kSpin})
      for (std::size_t size : {8UL, 4096UL, 65536UL, 1UL << 20})
        pingpong_figure(family, wait, size, buffer.data());
    for (std::size_t size = 4096; size <= top; size *= 16)
      stream_figure(family, size, buffer.data());
  }
}

}  // namespace limits
