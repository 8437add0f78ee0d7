// SPDX-License-Identifier: Apache-2.0
#include "net/event_loop.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/fd.h"
#include "core/mutex.h"
#include "core/thread.h"

namespace memspan {

class EventLoop::State : public std::enable_shared_from_this<State> {
 public:
  static Result<std::shared_ptr<State>> make() {
    auto state = std::make_shared<State>();
    state->epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
    if (!state->epoll_.is_valid()) return Status::from_errno("epoll_create1");
    MEMSPAN_TRY_ASSIGN(state->wake_, WakeEvent::create(), "making an event loop");
    MEMSPAN_TRY(state->control(EPOLL_CTL_ADD, state->wake_.descriptor(), EPOLLIN, 0),
                "making an event loop");
    state->runner_ = std::this_thread::get_id();
    return state;
  }
  static Result<std::shared_ptr<State>> start(std::string_view whose, Failed failed) {
    MEMSPAN_TRY_ASSIGN(std::shared_ptr<State> state, make(), "starting a thread");
    state->failed_ = std::move(failed);
    MEMSPAN_TRY_ASSIGN(state->thread_, start_thread(whose, [state] { state->run(); }),
                       "making an event loop");
    state->runner_ = state->thread_.get_id();
    return state;
  }

  // False in a child of fork().
  bool is_of_this_process() const { return process_ == getpid(); }
  bool is_this_thread() const { return std::this_thread::get_id() == runner_; }

  Result<Token> watch(int descriptor, std::uint32_t events, Ready ready) {
    if (!is_of_this_process())
      return Status(Code::kForked, "this event loop's thread stayed in the parent of this process");
    MutexLock lock(mutex_);
    const Token token = ++last_token_;
    MEMSPAN_TRY(control(EPOLL_CTL_ADD, descriptor, events, token), "watching a descriptor");
    entries_[token] = {descriptor, {}, std::make_shared<Ready>(std::move(ready))};
    return token;
  }

  void change(Token token, std::uint32_t events) {
    if (!is_of_this_process()) return;
    MutexLock lock(mutex_);
    const auto found = entries_.find(token);
    if (found != entries_.end())
      static_cast<void>(control(EPOLL_CTL_MOD, found->second.descriptor, events, token));
  }

  Token call_at(Clock::time_point when, std::function<void()> call) {
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

  void cancel(Token token) {
    if (!is_of_this_process()) return;
    Entry released;  // its destructor may call us
    MutexLock lock(mutex_);
    released = extract(token);
    if (is_this_thread()) return;
    while (running_ == token && token != 0) finished_.wait_until(mutex_, Deadline::never());
  }

  bool turn(const Deadline& deadline) {
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

  void finish_running_call() {
    if (!is_of_this_process() || is_this_thread()) return;
    MutexLock lock(mutex_);
    const std::uint64_t calls = calls_;
    while (running_ != 0 && calls_ == calls) finished_.wait_until(mutex_, Deadline::never());
  }

  // False in a child of fork().
  bool end() {
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

 private:
  struct Entry {
    int descriptor = -1;  // -1: a timer
    Clock::time_point when = {};
    std::shared_ptr<Ready> call;  // owners: this and a call that runs
  };

  Status control(int operation, int descriptor, std::uint32_t events, Token token) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = token;
    if (epoll_ctl(epoll_.get(), operation, descriptor, &event) == 0) return Status::ok();
    return Status::from_errno(fmt::format("epoll_ctl of descriptor {}", descriptor));
  }

  Entry extract(Token token) MEMSPAN_REQUIRES(mutex_) {
    auto found = entries_.extract(token);
    if (found.empty()) return {};
    const Entry& entry = found.mapped();
    if (entry.descriptor < 0)
      timers_.erase({entry.when, token});
    else
      static_cast<void>(control(EPOLL_CTL_DEL, entry.descriptor, 0, token));
    return std::move(found.mapped());
  }

  void run() {
    for (bool is_over = false; !is_over;) {
      try {
        turn(Deadline::never());
      } catch (const std::exception& error) {
        if (!failed_) throw;
        failed_(error);  // the loop itself lacked memory; what was not called is still due
      }
      MutexLock lock(mutex_);
      is_over = is_ending_;
    }
  }

  int time_to_next_timer(const Deadline& deadline) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (timers_.empty()) return deadline.remaining_poll_ms();
    // call_soon() has the least time there is.
    return deadline.until(std::max(Clock::now(), timers_.begin()->first)).remaining_poll_ms();
  }

  // Only timers that have expired now. Timers that their callbacks start wait for the next turn.
  std::vector<Token> expired_timers() MEMSPAN_EXCLUDES(mutex_) {
    const auto now = Clock::now();
    std::vector<Token> tokens;
    MutexLock lock(mutex_);
    for (auto timer = timers_.begin(); timer != timers_.end() && timer->first <= now; ++timer)
      tokens.push_back(timer->second);
    return tokens;
  }

  // False if the callback has been cancelled.
  bool call(Token token, std::uint32_t events) MEMSPAN_EXCLUDES(mutex_) {
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
    const Running running(*this, ready);
    try {
      (*ready)(events);
    } catch (const std::exception& error) {
      if (!failed_) throw;
      failed_(error);
    }
    return true;
  }

  // A call that runs, to its end or its exception.
  class Running {
   public:
    Running(State& loop, std::shared_ptr<Ready>& call) : loop_(loop), call_(call) {}
    ~Running() {
      call_.reset();
      MutexLock lock(loop_.mutex_);
      loop_.running_ = 0;
      loop_.finished_.notify_all();
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    State& loop_;
    std::shared_ptr<Ready>& call_;
  };

  const pid_t process_ = getpid();
  Fd epoll_;
  WakeEvent wake_;  // token 0
  std::thread thread_;
  std::thread::id runner_;  // the thread that calls
  Failed failed_;
  Mutex mutex_;
  ConditionVariable finished_;
  bool is_ending_ MEMSPAN_GUARDED_BY(mutex_) = false;
  Token last_token_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  Token running_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::uint64_t calls_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::map<Token, Entry> entries_ MEMSPAN_GUARDED_BY(mutex_);
  std::set<std::pair<Clock::time_point, Token>> timers_ MEMSPAN_GUARDED_BY(mutex_);
};

namespace {

// The loop of this process. Never destroyed, since threads may outlive main().
struct Shared {
  Mutex mutex;
  std::weak_ptr<EventLoop> loop MEMSPAN_GUARDED_BY(mutex);
};

// The mutex is held across fork(), so that it is free in the child.
void lock_before_fork();
void unlock_in_parent();
void begin_anew_in_child();

Shared& shared() {
  static Shared& made = []() -> Shared& {
    pthread_atfork(lock_before_fork, unlock_in_parent, begin_anew_in_child);
    return *new Shared;
  }();
  return made;
}

void lock_before_fork() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
  shared().mutex.lock();
}
void unlock_in_parent() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
  shared().mutex.unlock();
}
void begin_anew_in_child() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
  shared().loop.reset();
  shared().mutex.unlock();
}

}  // namespace

EventLoop::EventLoop(std::shared_ptr<State> state) : state_(std::move(state)) {}

EventLoop::~EventLoop() {
  state_->end();
}

Result<std::shared_ptr<EventLoop>> EventLoop::start(std::string_view whose, Failed failed) {
  auto state = State::start(whose, std::move(failed));
  if (!state.is_ok()) return state.status();
  return std::shared_ptr<EventLoop>(new EventLoop(std::move(state).value()));
}

Result<std::shared_ptr<EventLoop>> EventLoop::without_thread() {
  auto state = State::make();
  if (!state.is_ok()) return state.status();
  return std::shared_ptr<EventLoop>(new EventLoop(std::move(state).value()));
}

bool EventLoop::run_once(const Deadline& deadline) {
  return state_->turn(deadline);
}

Result<std::shared_ptr<EventLoop>> EventLoop::process_singleton() {
  MutexLock lock(shared().mutex);
  if (auto loop = shared().loop.lock()) return loop;
  auto made = start("an event loop");
  if (made.is_ok()) shared().loop = *made;
  return made;
}

Result<EventLoop::Token> EventLoop::watch(int descriptor, std::uint32_t events, Ready ready) {
  return state_->watch(descriptor, events, std::move(ready));
}

bool EventLoop::stop() {
  return state_->end();
}

void EventLoop::change(Token token, std::uint32_t events) {
  state_->change(token, events);
}

EventLoop::Token EventLoop::call_at(Clock::time_point when, std::function<void()> call) {
  return state_->call_at(when, std::move(call));
}

void EventLoop::cancel(Token token) {
  state_->cancel(token);
}

void EventLoop::finish_running_call() {
  state_->finish_running_call();
}

bool EventLoop::is_this_thread() const {
  return state_->is_this_thread();
}

}  // namespace memspan
