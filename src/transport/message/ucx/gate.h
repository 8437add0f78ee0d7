// SPDX-License-Identifier: Apache-2.0
// Shows a UCX worker's descriptor in an epoll, which the engine watches, while no thread
// waits in a call. A waiting thread serves the worker itself.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

namespace memspan::ucx {

// The caller holds the worker's mutex, except for start().
class Gate {
 public:
  // `epoll` must outlive it.
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
  // Whether exactly one thread waits.
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
