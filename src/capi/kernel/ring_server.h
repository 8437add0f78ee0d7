// SPDX-License-Identifier: Apache-2.0
// The host's side of a ring of <memspan/kernel_state.h>: a thread that does what kernels on a
// device ask for, in the order of their tickets.
#pragma once

#include <memspan/kernel_state.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>

#include "core/clock.h"
#include "core/thread.h"

namespace memspan::capi {

static_assert(sizeof(memspan_kernel_request) == 128 + MEMSPAN_KERNEL_PAYLOAD_BYTES);
static_assert(offsetof(memspan_kernel_request, payload) == 128);

// Takes questions out of a ring. One thread at a time but for wait_until_done().
class RingReader {
 public:
  // `slots` are all zero at first, and `count` of them, a power of two.
  RingReader(memspan_kernel_request* slots, std::uint64_t count) : slots_(slots), count_(count) {}

  // The next request, or null if it has not arrived.
  memspan_kernel_request* next() const { return filled(taken_.load(std::memory_order_relaxed)); }
  // Frees its slot, or answers the kernel that waits. next() then returns the one after it.
  void finish(memspan_kernel_request& request, std::uint64_t answer) {
    const std::uint64_t number = taken_.load(std::memory_order_relaxed);
    request.answer = answer;
    // First, so that a thread that finds no slot filled at this number need not wait.
    taken_.store(number + 1, std::memory_order_release);  // pairs with wait_until_done()
    // Pairs with the acquire of claim() and ask_and_wait() there.
    turn_of(request).store(3 * (number / count_) + (request.question.is_posted != 0 ? 3 : 2),
                           std::memory_order_release);
    taken_.notify_all();
  }
  // Until all that was filled before is done. Thread-safe.
  void wait_until_done() const {
    while (true) {
      const std::uint64_t number = taken_.load(std::memory_order_acquire);
      // A slot that is done may be filled again, in its next round.
      if (filled(number) == nullptr && taken_.load(std::memory_order_acquire) == number) return;
      if (filled(number) != nullptr) taken_.wait(number, std::memory_order_acquire);
    }
  }

 private:
  static std::atomic_ref<std::uint64_t> turn_of(memspan_kernel_request& request) {
    return std::atomic_ref<std::uint64_t>(request.turn);
  }
  memspan_kernel_request* filled(std::uint64_t number) const {
    memspan_kernel_request& slot = slots_[number % count_];
    // Pairs with the release of pass_on() in <memspan/kernel_ring.h>.
    return turn_of(slot).load(std::memory_order_acquire) == 3 * (number / count_) + 1 ? &slot
                                                                                      : nullptr;
  }

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
                                                   std::function<void()> look) {
    std::unique_ptr<RingServer> made(
        new RingServer(slots, count, std::move(perform), std::move(look)));
    MEMSPAN_TRY_ASSIGN(
        made->thread_,
        start_thread("kernels' questions", [server = made.get()] { server->serve(); }),
        "serving kernels on devices");
    return made;
  }
  ~RingServer() {
    is_ending_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
  }
  // Returns when all that was asked before is done. Not for its own thread.
  void finish() const { reader_.wait_until_done(); }

 private:
  RingServer(memspan_kernel_request* slots, std::uint64_t count, Perform perform,
             std::function<void()> look)
      : reader_(slots, count), perform_(std::move(perform)), look_(std::move(look)) {}
  void serve() {
    Clock::time_point last = Clock::now();
    while (!is_ending_.load(std::memory_order_relaxed)) {
      look_();
      if (memspan_kernel_request* const request = reader_.next(); request != nullptr) {
        reader_.finish(*request, perform_(*request));
        last = Clock::now();
      } else {
        rest(Clock::now() - last);
      }
    }
  }
  static void rest(Duration idle) {
    if (idle < kAwake)
      sched_yield();
    else
      std::this_thread::sleep_for(
          std::clamp<Duration>(idle / kNapsInIdleTime, kLeastNap, kLongestNap));
  }

  // So long after a question the next one is answered at once.
  static constexpr auto kAwake = std::chrono::milliseconds(1);
  // A device cannot wake a host thread, so the thread polls. Its nap is this part of the time
  // without questions, within these bounds.
  static constexpr int kNapsInIdleTime = 10;
  static constexpr Duration kLeastNap = std::chrono::microseconds(50);
  static constexpr Duration kLongestNap = std::chrono::milliseconds(1);

  RingReader reader_;
  const Perform perform_;
  const std::function<void()> look_;
  std::atomic<bool> is_ending_{false};
  std::thread thread_;
};

}  // namespace memspan::capi
