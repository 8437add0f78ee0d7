// SPDX-License-Identifier: Apache-2.0
// Signals are for the program's own threads. A thread of ours that starts while signals are blocked
// inherits the block.
#pragma once

#include <csignal>

namespace memspan {

// Blocks all signals of this thread for its lifetime. One thread.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace memspan
