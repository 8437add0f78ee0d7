// SPDX-License-Identifier: Apache-2.0
// Threads of the library. Those that run none of the program's code take no signals
// (SignalsBlocked), and no exception leaves a thread.
#pragma once

#include <csignal>
#include <new>
#include <system_error>
#include <thread>

#include "core/status.h"

namespace memspan::inline core {

// Blocks the signals of this thread for its lifetime, and those of threads that it starts. Not
// those of faults: if blocked, a fault would end the process despite a handler. One thread.
class SignalsBlocked : NotCopyable {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
      sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// A thread that runs `run`, with the signal mask of the caller. kSystem if it cannot start; `whose`
// completes "the thread of ...".
template <typename Run>
Result<std::thread> start_thread(std::string_view whose, Run run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    return Status(Code::kSystem,
                  "starting the thread of " + std::string(whose) + ": " + error.what());
  }
}

// Returns the result of `call()`, or kOutOfMemory for std::bad_alloc: on threads of the library,
// and where what was done before has to be undone.
template <typename Call>
Status caught(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, "out of memory"};
  }
}

}  // namespace memspan::inline core
