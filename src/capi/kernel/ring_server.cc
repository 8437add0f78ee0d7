// SPDX-License-Identifier: Apache-2.0
#include "capi/kernel/ring_server.h"

#include <sched.h>

#include "core/thread.h"

namespace memspan::capi {
namespace {

// So long after a question the next one is answered at once.
constexpr auto kAwake = std::chrono::milliseconds(1);
// A device cannot wake a host thread, so the thread polls. Its nap is this part of the time without
// questions, within these bounds.
constexpr int kNapsInIdleTime = 10;
constexpr Duration kLeastNap = std::chrono::microseconds(50);
constexpr Duration kLongestNap = std::chrono::milliseconds(1);

std::atomic_ref<std::uint64_t> turn_of(memspan_kernel_request& request) {
  return std::atomic_ref<std::uint64_t>(request.turn);
}

}  // namespace

static_assert(sizeof(memspan_kernel_request) == 128 + MEMSPAN_KERNEL_PAYLOAD_BYTES);
static_assert(offsetof(memspan_kernel_request, payload) == 128);

memspan_kernel_request* RingReader::filled(std::uint64_t number) const {
  memspan_kernel_request& slot = slots_[number % count_];
  // Pairs with the release of pass_on() in <memspan/kernel_ring.h>.
  return turn_of(slot).load(std::memory_order_acquire) == 3 * (number / count_) + 1 ? &slot
                                                                                    : nullptr;
}

memspan_kernel_request* RingReader::next() const {
  return filled(taken_.load(std::memory_order_relaxed));
}

void RingReader::finish(memspan_kernel_request& request, std::uint64_t answer) {
  const std::uint64_t number = taken_.load(std::memory_order_relaxed);
  request.answer = answer;
  // First, so that a thread that finds no slot filled at this number need not wait.
  taken_.store(number + 1, std::memory_order_release);  // pairs with wait_until_done()
  // Pairs with the acquire of claim() and ask_and_wait() there.
  turn_of(request).store(3 * (number / count_) + (request.question.is_posted != 0 ? 3 : 2),
                         std::memory_order_release);
  taken_.notify_all();
}

void RingReader::wait_until_done() const {
  while (true) {
    const std::uint64_t number = taken_.load(std::memory_order_acquire);
    // A slot that is done may be filled again, in its next round.
    if (filled(number) == nullptr && taken_.load(std::memory_order_acquire) == number) return;
    if (filled(number) != nullptr) taken_.wait(number, std::memory_order_acquire);
  }
}

Result<std::unique_ptr<RingServer>> RingServer::start(memspan_kernel_request* slots,
                                                      std::uint64_t count, Perform perform,
                                                      std::function<void()> look) {
  std::unique_ptr<RingServer> made(
      new RingServer(slots, count, std::move(perform), std::move(look)));
  MEMSPAN_TRY_ASSIGN(made->thread_,
                     start_thread("kernels' questions", [server = made.get()] { server->serve(); }),
                     "serving kernels on devices");
  return made;
}

RingServer::~RingServer() {
  is_ending_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

void RingServer::serve() {
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

void RingServer::rest(Duration idle) {
  if (idle < kAwake)
    sched_yield();
  else
    std::this_thread::sleep_for(
        std::clamp<Duration>(idle / kNapsInIdleTime, kLeastNap, kLongestNap));
}

}  // namespace memspan::capi
