// SPDX-License-Identifier: Apache-2.0
// The host's side of a ring of <memspan/kernel_state.h>: a thread that does what kernels on a
// device ask for, in the order of their tickets.
#pragma once

#include <memspan/kernel_state.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "core/clock.h"
#include "core/status.h"

namespace memspan::capi {

// Takes questions out of a ring. One thread at a time but for wait_until_done().
class RingReader {
 public:
  // `slots` are all zero at first, and `count` of them, a power of two.
  RingReader(memspan_kernel_request* slots, std::uint64_t count) : slots_(slots), count_(count) {}

  // The next request, or null if it has not arrived.
  memspan_kernel_request* next() const;
  // Frees its slot, or answers the kernel that waits. next() then returns the one after it.
  void finish(memspan_kernel_request& request, std::uint64_t answer);
  // Until all that was filled before is done. Thread-safe.
  void wait_until_done() const;

 private:
  memspan_kernel_request* filled(std::uint64_t number) const;

  memspan_kernel_request* const slots_;
  const std::uint64_t count_;
  std::atomic<std::uint64_t> taken_{0};  // how many are done
};

// Its end waits for the question that is being done, and forgets those that come after it.
class RingServer : NotCopyable {
 public:
  // Answers a question; it may fill the payload.
  using Perform = std::function<std::uint64_t(memspan_kernel_request& request)>;
  // `look` is called between questions, and at least every millisecond without questions.
  static Result<std::unique_ptr<RingServer>> start(memspan_kernel_request* slots,
                                                   std::uint64_t count, Perform perform,
                                                   std::function<void()> look);
  ~RingServer();
  // Returns when all that was asked before is done. Not for its own thread.
  void finish() const { reader_.wait_until_done(); }

 private:
  RingServer(memspan_kernel_request* slots, std::uint64_t count, Perform perform,
             std::function<void()> look)
      : reader_(slots, count), perform_(std::move(perform)), look_(std::move(look)) {}
  void serve();
  static void rest(Duration idle);

  RingReader reader_;
  const Perform perform_;
  const std::function<void()> look_;
  std::atomic<bool> is_ending_{false};
  std::thread thread_;
};

}  // namespace memspan::capi
