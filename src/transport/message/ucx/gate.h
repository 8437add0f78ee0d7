// SPDX-License-Identifier: Apache-2.0
// Shows the descriptor of a worker of UCX's in an epoll, which the progress thread watches, as long
// as no thread waits in a call: that one sees to it.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

namespace memspan::ucx {

// With the mutex of its worker held, but for start().
class Gate {
 public:
  // `epoll` outlives it.
  void start(int epoll, int descriptor) {
    epoll_ = epoll;
    descriptor_ = descriptor;
    set(EPOLL_CTL_ADD, EPOLLIN);
  }
  void end() {
    if (epoll_ >= 0) set(EPOLL_CTL_DEL, 0);
  }
  // Around the waits of a thread.
  void close() {
    if (waiting_++ == 0) set(EPOLL_CTL_MOD, 0);
  }
  void open() {
    if (--waiting_ == 0) set(EPOLL_CTL_MOD, EPOLLIN);
  }
  // Whether no other thread waits beside the one that does.
  bool is_last() const { return waiting_ == 1; }

 private:
  void set(int operation, std::uint32_t events) const {
    epoll_event event{.events = events, .data = {}};
    ::epoll_ctl(epoll_, operation, descriptor_, &event);
  }

  int epoll_ = -1;
  int descriptor_ = -1;
  int waiting_ = 0;  // threads
};

}  // namespace memspan::ucx
