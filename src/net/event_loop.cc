// SPDX-License-Identifier: Apache-2.0
#include "net/event_loop.h"

#include <fmt/format.h>

#include <array>

#include "core/thread.h"

namespace memspan::inline net {
namespace {

// The loop of this process.
struct Shared {
  Mutex mutex;
  std::weak_ptr<EventLoop> loop MEMSPAN_GUARDED_BY(mutex);

  void forget_in_child() MEMSPAN_REQUIRES(mutex) { loop.reset(); }
};
constexpr auto& shared = held_at_fork<Shared>;

}  // namespace

Result<std::shared_ptr<EventLoop>> EventLoop::make() {
  std::shared_ptr<EventLoop> loop(new EventLoop);
  loop->epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!loop->epoll_.is_valid()) return Status::from_errno("epoll_create1");
  MEMSPAN_TRY_ASSIGN(loop->wake_, WakeEvent::create(), "making an event loop");
  MEMSPAN_TRY(loop->control(EPOLL_CTL_ADD, loop->wake_.descriptor(), EPOLLIN, 0),
              "making an event loop");
  return loop;
}

std::shared_ptr<EventLoop> EventLoop::owned(std::shared_ptr<EventLoop> loop) {
  EventLoop* const address = loop.get();
  // A weak pointer keeps the deleter, which must not keep the loop's descriptors.
  return {address,
          [loop = std::move(loop)](EventLoop*) mutable { std::exchange(loop, nullptr)->stop(); }};
}

Result<std::shared_ptr<EventLoop>> EventLoop::start(std::string_view whose, Failed failed) {
  MEMSPAN_TRY_ASSIGN(std::shared_ptr<EventLoop> loop, make(), "starting a thread");
  loop->failed_ = std::move(failed);
  const SignalsBlocked blocked;  // the thread inherits it
  MEMSPAN_TRY_ASSIGN(loop->thread_, start_thread(whose, [loop] { loop->run(); }),
                     "making an event loop");
  loop->runner_ = loop->thread_.get_id();
  return owned(std::move(loop));
}

Result<std::shared_ptr<EventLoop>> EventLoop::without_thread() {
  auto loop = make();
  return loop.is_ok() ? owned(std::move(loop).value()) : loop;
}

Result<std::shared_ptr<EventLoop>> EventLoop::process_singleton() {
  MutexLock lock(shared().mutex);
  if (auto loop = shared().loop.lock()) return loop;
  auto made = start("an event loop");
  if (made.is_ok()) shared().loop = *made;
  return made;
}

Result<EventLoop::Token> EventLoop::watch(int descriptor, std::uint32_t events, Ready ready) {
  if (!is_of_this_process())
    return Status(Code::kForked, "this event loop's thread stayed in the parent of this process");
  MutexLock lock(mutex_);
  const Token token = ++last_token_;
  MEMSPAN_TRY(control(EPOLL_CTL_ADD, descriptor, events, token), "watching a descriptor");
  entries_[token] = {descriptor, {}, std::make_shared<Ready>(std::move(ready))};
  return token;
}

void EventLoop::change(Token token, std::uint32_t events) {
  if (!is_of_this_process()) return;
  MutexLock lock(mutex_);
  const auto found = entries_.find(token);
  if (found != entries_.end())
    static_cast<void>(control(EPOLL_CTL_MOD, found->second.descriptor, events, token));
}

EventLoop::Token EventLoop::call_at(Clock::time_point when, std::function<void()> call) {
  if (!is_of_this_process()) return 0;
  MutexLock lock(mutex_);
  const Token token = ++last_token_;
  const bool is_next = timers_.empty() || when < timers_.begin()->first;
  auto ready = std::make_shared<Ready>([call = std::move(call)](std::uint32_t) { call(); });
  entries_[token] = {-1, when, std::move(ready)};
  try {
    timers_.emplace(when, token);
  } catch (const std::bad_alloc&) {
    entries_.erase(token);
    throw;
  }
  if (is_next && !is_this_thread()) wake_.ring();
  return token;
}

void EventLoop::cancel(Token token) {
  if (!is_of_this_process()) return;
  Entry released;  // its destructor may call us
  MutexLock lock(mutex_);
  released = extract(token);
  if (is_this_thread()) return;
  while (running_ == token && token != 0) finished_.wait_until(mutex_, Deadline::never());
}

bool EventLoop::run_once(const Deadline& deadline) {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                               time_to_next_timer(deadline));
  bool has_called = false;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == 0)
      wake_.silence();
    else
      has_called = call(event.data.u64, event.events) || has_called;
  }
  for (const Token token : expired_timers()) has_called = call(token, 0) || has_called;
  return has_called;
}

void EventLoop::finish_running_call() {
  if (!is_of_this_process() || is_this_thread()) return;
  MutexLock lock(mutex_);
  const std::uint64_t calls = calls_;
  while (running_ != 0 && calls_ == calls) finished_.wait_until(mutex_, Deadline::never());
}

bool EventLoop::stop() {
  if (!is_of_this_process()) return false;
  std::map<Token, Entry> released;
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
    released.swap(entries_);
    timers_.clear();
  }
  if (!thread_.joinable()) return true;
  wake_.ring();
  if (is_this_thread())
    thread_.detach();
  else
    thread_.join();
  return true;
}

Status EventLoop::control(int operation, int descriptor, std::uint32_t events, Token token) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  if (epoll_ctl(epoll_.get(), operation, descriptor, &event) == 0) return Status::ok();
  return Status::from_errno(fmt::format("epoll_ctl of descriptor {}", descriptor));
}

EventLoop::Entry EventLoop::extract(Token token) {
  auto found = entries_.extract(token);
  if (found.empty()) return {};
  const Entry& entry = found.mapped();
  if (entry.descriptor < 0)
    timers_.erase({entry.when, token});
  else
    static_cast<void>(control(EPOLL_CTL_DEL, entry.descriptor, 0, token));
  return std::move(found.mapped());
}

void EventLoop::run() {
  for (bool is_over = false; !is_over;) {
    try {
      run_once(Deadline::never());
    } catch (const std::exception& error) {
      if (!failed_) throw;
      failed_(error);  // the loop itself lacked memory; what was not called is still due
    }
    MutexLock lock(mutex_);
    is_over = is_ending_;
  }
}

int EventLoop::time_to_next_timer(const Deadline& deadline) {
  MutexLock lock(mutex_);
  if (timers_.empty()) return deadline.remaining_poll_ms();
  // call_soon() has the least time there is.
  return deadline.until(std::max(Clock::now(), timers_.begin()->first)).remaining_poll_ms();
}

// Only timers that have expired now. Timers that their callbacks start wait for the next turn.
std::vector<EventLoop::Token> EventLoop::expired_timers() {
  const auto now = Clock::now();
  std::vector<Token> tokens;
  MutexLock lock(mutex_);
  for (auto timer = timers_.begin(); timer != timers_.end() && timer->first <= now; ++timer)
    tokens.push_back(timer->second);
  return tokens;
}

// False if the callback has been cancelled.
bool EventLoop::call(Token token, std::uint32_t events) {
  std::shared_ptr<Ready> ready;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(token);
    if (found == entries_.end()) return false;
    running_ = token;
    ++calls_;
    ready = found->second.call;
    if (found->second.descriptor < 0) extract(token);
  }
  std::exception_ptr thrown;
  try {
    (*ready)(events);
  } catch (const std::exception& error) {
    if (failed_)
      failed_(error);
    else
      thrown = std::current_exception();
  }
  ready.reset();
  {
    MutexLock lock(mutex_);
    running_ = 0;
    finished_.notify_all();
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
  return true;
}

}  // namespace memspan::inline net
