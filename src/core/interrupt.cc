// SPDX-License-Identifier: Apache-2.0
#include "core/interrupt.h"

namespace memspan::inline core {
namespace {

struct ThreadState {
  InterruptHandler handler = nullptr;
  Clock::time_point called;  // or when the thread began to sleep
  bool is_interrupted = false;
  const std::atomic<bool>* flag = nullptr;  // of EndsWith
  const char* why = nullptr;
  bool has_ended() const { return flag != nullptr && flag->load(std::memory_order_acquire); }
};
constinit thread_local ThreadState state;

// The period begins with the first sleep, so that short waits never call the handler.
bool is_due() {
  const auto now = Clock::now();
  if (state.called == Clock::time_point()) state.called = now;
  if (now < state.called + kInterruptPeriod) return false;
  state.called = now;
  return true;
}

}  // namespace

InterruptHandler set_thread_interrupt_handler(InterruptHandler handler) {
  state.called = {};
  state.is_interrupted = false;
  return std::exchange(state.handler, handler);
}

bool is_interruptible() {
  return state.handler != nullptr || state.flag != nullptr;
}

EndsWith::EndsWith(const std::atomic<bool>& flag, const char* why)
    : outer_flag_(std::exchange(state.flag, &flag)), outer_why_(std::exchange(state.why, why)) {}

EndsWith::~EndsWith() {
  state.flag = outer_flag_;
  state.why = outer_why_;
}

bool is_interrupted() {
  if (state.has_ended()) return true;
  if (state.handler == nullptr) return false;
  if (!state.is_interrupted && is_due()) state.is_interrupted = state.handler() != 0;
  return state.is_interrupted;
}

bool is_interrupted(Mutex& held) {
  if (!is_interruptible()) return false;
  held.unlock();
  const bool is_over = is_interrupted();
  held.lock();
  return is_over;
}

Deadline until_next_look(const Deadline& deadline) {
  if (!is_interruptible()) return deadline;
  if (state.called == Clock::time_point()) state.called = Clock::now();
  return deadline.within(kInterruptPeriod);
}

bool wait_interruptibly(ConditionVariable& changed, Mutex& mutex, const Deadline& deadline) {
  if (!is_interruptible()) return changed.wait_until(mutex, deadline);
  changed.wait_until(mutex, until_next_look(deadline));
  return !is_interrupted(mutex) && !deadline.has_passed();
}

Status end_of_wait(std::string on_timeout) {
  if (state.is_interrupted || state.has_ended()) return interruption();
  return {Code::kTimeout, std::move(on_timeout)};
}

Status interruption() {
  return {Code::kSystem, state.has_ended() ? state.why : "interrupted by a signal's handler"};
}

Status poll_ready(std::span<pollfd> polled, const Deadline& deadline, const char* on_timeout) {
  OnEngine::check_may_block();
  while (true) {
    const int ready =
        ::poll(polled.data(), polled.size(), until_next_look(deadline).remaining_poll_ms());
    if (ready > 0) return Status::ok();
    if (ready < 0 && errno != EINTR) return Status::from_errno("poll");
    if (is_interrupted() || deadline.has_passed()) return end_of_wait(on_timeout);
  }
}

}  // namespace memspan::inline core
