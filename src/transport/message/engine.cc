// SPDX-License-Identifier: Apache-2.0
#include "transport/message/engine.h"

#include <sys/syscall.h>

#include <array>

#include "core/thread.h"

namespace memspan::inline transport {
namespace {

constexpr Engine::Id kWake = 0;
constexpr int kEventsAtOnce = 16;
// Looks at the first source or the last speaker before one look at all sources.
constexpr int kLooksAtSpeaker = 8;

// Waits less than kSoon apart form a row. After so many in a row the set stays disarmed.
constexpr auto kSoon = std::chrono::microseconds(100);
constexpr int kWaitsInRow = 3;
// It stays so for the row's time divided by this.
constexpr int kKeptPart = 8;
constexpr Duration kLeastKept = std::chrono::microseconds(50);
constexpr Duration kMostKept = std::chrono::milliseconds(1);
// The time that a thread has to wake up for its turn.
constexpr Duration kHandOver = std::chrono::microseconds(200);

// epoll_wait() supports only milliseconds. Kernels before 5.11 and old container runtimes allow
// only that: the wait is then longer.
int wait_for_events(int epoll, std::span<epoll_event> events, Duration limit) {
  const auto most = static_cast<int>(events.size());
#ifdef SYS_epoll_pwait2
  if (limit > Duration::zero() && limit != Duration::max()) {
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(limit).count();
    constexpr std::int64_t kSecond = 1'000'000'000;
    const struct { std::int64_t seconds, ns; } time{ns / kSecond, ns % kSecond};
    const long got = ::syscall(SYS_epoll_pwait2, epoll, events.data(), most, &time, nullptr, 0);
    if (got >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(got);
  }
#endif
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(limit).count();
  return ::epoll_wait(
      epoll, events.data(), most,
      limit == Duration::max() ? -1 : static_cast<int>(std::min(ms, std::int64_t{1} << 30)));
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::start(std::function<void()> after_turn) {
  std::unique_ptr<Engine> made(new Engine(std::move(after_turn)));
  made->outer_.reset(::epoll_create1(EPOLL_CLOEXEC));
  made->inner_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!made->outer_.is_valid() || !made->inner_.is_valid())
    return Status::from_errno("epoll_create1");
  MEMSPAN_TRY_ASSIGN(made->wake_, WakeEvent::create(), "starting the engine");
  for (const auto& [descriptor, id] :
       {std::pair(made->wake_.descriptor(), kWake), std::pair(made->inner_.get(), kWake + 1)}) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = id}};
    if (::epoll_ctl(made->outer_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
      return Status::from_errno("epoll_ctl");
  }
  {
    const Turn held(*made);
    for (const int descriptor : {made->outer_.get(), made->inner_.get(), made->wake_.descriptor()})
      made->book(descriptor);
  }
  const SignalsBlocked blocked;  // the thread inherits it
  MEMSPAN_TRY_ASSIGN(made->thread_,
                     start_thread("transport \"message\"", [p = made.get()] { p->run(); }),
                     "starting the engine");
  return made;
}

Engine::~Engine() {
  stop();
  for (Booked* one = booked_.load(); one != nullptr;) delete std::exchange(one, one->next);
}

void Engine::stop() {
  if (is_forgotten_) {
    if (thread_.joinable()) thread_.detach();
    return;
  }
  ends_.store(true, std::memory_order_release);
  wake_.ring();
  if (thread_.joinable()) thread_.join();
}

void Engine::forget_in_child() {
  is_forgotten_ = true;
  // /dev/null replaces them. So no peer mistakes the child for this process, and their owners may
  // still close them.
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const Booked* one = booked_.load(); one != nullptr && null.is_valid(); one = one->next)
    if (const int descriptor = one->descriptor.load(); descriptor >= 0)
      ::dup3(null.get(), descriptor, O_CLOEXEC);
}

void Engine::book(int descriptor) {
  for (Booked* one = booked_.load(); one != nullptr; one = one->next)
    if (int none = -1; one->descriptor.compare_exchange_strong(none, descriptor)) return;
  booked_.store(new Booked{descriptor, booked_.load()});
}

void Engine::unbook(int descriptor) {
  for (Booked* one = booked_.load(); one != nullptr; one = one->next)
    if (int booked = descriptor; one->descriptor.compare_exchange_strong(booked, -1)) return;
}

void Engine::acquire() {
  wanted_.fetch_add(1, std::memory_order_relaxed);
  turn.lock();
  wanted_.fetch_sub(1, std::memory_order_relaxed);
  turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  OnEngine::begin();
}

void Engine::release() {
  OnEngine::end();
  turn.unlock();
}

void Engine::yield() {
  release();
  if (wanted_.load(std::memory_order_relaxed) > 0)
    std::this_thread::yield();
  else
    cpu_pause();
  acquire();
}

// A mutex is not fair: the thread that unlocks it is faster than one that is woken.
void Engine::release_to_others() {
  const std::uint64_t before = turns_.load(std::memory_order_relaxed);
  release();
  if (wanted_.load(std::memory_order_relaxed) == 0) return;
  const Deadline limit = Deadline::after(kHandOver);
  while (turns_.load(std::memory_order_relaxed) == before && !limit.has_passed())
    std::this_thread::yield();
}

void Engine::wait_for_notice(const Deadline& deadline) {
  OnEngine::end();
  ++sleepers_;
  changed_.wait_until(turn, deadline);
  --sleepers_;
  OnEngine::begin();
}

// The interrupt handler may run code of the program.
bool Engine::is_interrupted_now() {
  if (!is_interruptible()) return false;
  release();
  const bool is_over = is_interrupted();
  acquire();
  return is_over;
}

Result<Engine::Id> Engine::add(int descriptor, std::shared_ptr<Source> source) {
  const Id id = ++last_id_;
  if (descriptor >= 0) {
    epoll_event event{.events = EPOLLONESHOT, .data = {.u64 = id}};
    if (::epoll_ctl(inner_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
      return Status::from_errno("epoll_ctl");
    book(descriptor);
  }
  entries_.emplace(id, Entry{descriptor, std::move(source)});
  return id;
}

void Engine::watch(Id id, std::uint32_t events) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.descriptor < 0) return;
  if (events != 0 && events == found->second.events) return;
  found->second.events = events;
  epoll_event event{.events = events == 0 ? std::uint32_t{EPOLLONESHOT} : events,
                    .data = {.u64 = id}};
  ::epoll_ctl(inner_.get(), EPOLL_CTL_MOD, found->second.descriptor, &event);
}

void Engine::wake_at(Id id, Clock::time_point when) {
  timers_.emplace(when, id);
  if (std::this_thread::get_id() != thread_.get_id()) wake_.ring();
}

void Engine::call_again(Id id) {
  if (std::find(again_.begin(), again_.end(), id) == again_.end()) again_.push_back(id);
  if (is_served_here() && std::this_thread::get_id() != thread_.get_id()) wake_.ring();
}

void Engine::remove(Id id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  if (found->second.descriptor >= 0) {
    ::epoll_ctl(inner_.get(), EPOLL_CTL_DEL, found->second.descriptor, nullptr);
    unbook(found->second.descriptor);
  }
  if (id == worker_) set_prepare_sleep(0, nullptr);
  std::erase_if(timers_, [id](const auto& timer) { return timer.second == id; });
  entries_.erase(found);
}

void Engine::request_after_turn() {
  if (!is_polled_ && std::this_thread::get_id() != thread_.get_id()) wake_.ring();
}

void Engine::progress() {
  if (is_forgotten_ || !turn.try_lock()) return;
  OnEngine::begin();
  is_polled_ = true;
  serve(0);
  is_polled_ = false;
  release_to_others();
  after_turn_();
}

void Engine::begin_progress() {
  if (is_forgotten_) return;
  const Turn held(*this);
  begin_waits();
}

void Engine::end_progress() {
  if (is_forgotten_) return;
  const Turn held(*this);
  end_waits();
}

void Engine::rest_progress() {
  if (is_forgotten_) return;
  const Turn held(*this);
  arm(true);
  if (!again_.empty()) wake_.ring();
}

void Engine::begin_waits() {
  if (waits_++ != 0) return;
  const auto now = Clock::now();
  soon_again_ = now - waited_until_ < kSoon ? std::min(soon_again_ + 1, kWaitsInRow) : 0;
  if (soon_again_ == 0) waited_since_ = now;
  arm(false);
}

// Events that no thread took wake the engine's thread at once.
void Engine::end_waits() {
  if (--waits_ != 0) return;
  waited_until_ = Clock::now();
  if (!again_.empty()) wake_.ring();
  if (soon_again_ < kWaitsInRow) return arm(true);
  if (!std::exchange(is_kept_, true)) wake_.ring();
}

void Engine::arm(bool is_armed) {
  if (is_armed == is_armed_) return;
  is_armed_ = is_armed;
  if (is_armed) may_sleep();
  epoll_event event{.events = is_armed ? std::uint32_t{EPOLLIN} : 0u, .data = {.u64 = kWake + 1}};
  ::epoll_ctl(outer_.get(), EPOLL_CTL_MOD, inner_.get(), &event);
}

// Only for the engine's thread.
void Engine::arm_kept() {
  if (!is_kept_) return;
  if (waits_ == 0 && Clock::now() - waited_until_ >= kept_for()) arm(true);
  is_kept_ = !is_armed_;
}

Duration Engine::kept_for() const {
  return std::clamp<Duration>((waited_until_ - waited_since_) / kKeptPart, kLeastKept, kMostKept);
}

Duration Engine::time_left() {
  if (!again_.empty() && is_served_here()) return Duration::zero();
  const auto now = Clock::now();
  Duration left = Duration::max();
  if (is_kept_) left = kept_for() - (waits_ == 0 ? now - waited_until_ : Duration::zero());
  if (!timers_.empty()) left = std::min<Duration>(left, timers_.begin()->first - now);
  return std::max(left, Duration::zero());
}

void Engine::run() {
  AdaptiveSpin spin;
  while (!ends_.load(std::memory_order_acquire)) {
    after_turn_();
    bool may_spin = false;
    {
      const Turn held(*this);
      serve_timers();
      arm_kept();
      if (is_served_here()) serve_again();
      may_spin = is_armed_ && time_left() > kMostKept;
    }
    // Does not spin beside a thread that serves: they may share a core.
    const auto look = [&] {
      after_turn_();
      const Turn held(*this);
      return !is_armed_ || serve(0);
    };
    if (may_spin && spin.wait(look)) continue;
    // Handlers may have asked for something.
    after_turn_();
    wait_for_work();
  }
}

void Engine::wait_for_work() {
  Duration limit{};
  {
    const Turn held(*this);
    if (!is_armed_ || may_sleep()) limit = time_left();
  }
  std::array<epoll_event, 2> events;
  const int count = wait_for_events(outer_.get(), events, limit);
  bool is_ready = false;
  for (int i = 0; i < count; ++i) {
    if (events[static_cast<std::size_t>(i)].data.u64 != kWake)
      is_ready = true;
    else if (!ends_.load(std::memory_order_acquire))
      wake_.silence();
  }
  if (!is_ready) return;
  const Turn held(*this);
  if (is_armed_) serve_ready();
}

// Returns whether a source had something.
bool Engine::serve(Id first) {
  bool served = false;
  const Id speaker = first != 0 ? first : speaker_;
  const auto found = entries_.find(speaker);
  if (found != entries_.end() && ++rounds_ % kLooksAtSpeaker != 0) {
    const std::shared_ptr<Source> source = found->second.source;
    served = source->look();
  } else {
    served = serve_ready();
  }
  // Also what the look has called for.
  served = serve_again() || served;
  if (served) notify();
  return served;
}

bool Engine::serve_ready() {
  std::array<epoll_event, kEventsAtOnce> events;
  const int count = wait_for_events(inner_.get(), events, Duration::zero());
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if ((event.events & EPOLLIN) != 0) speaker_ = event.data.u64;
    call(event.data.u64, event.events);
  }
  if (count > 0) notify();
  return count > 0;
}

bool Engine::serve_again() {
  if (again_.empty()) return false;
  for (const Id id : std::exchange(again_, {})) call(id, 0);
  notify();
  return true;
}

void Engine::serve_timers() {
  std::vector<Id> due;
  const auto later = timers_.upper_bound(Clock::now());
  for (auto timer = timers_.begin(); timer != later; ++timer) due.push_back(timer->second);
  timers_.erase(timers_.begin(), later);
  for (const Id id : due) call(id, 0);
  if (!due.empty()) notify();
}

void Engine::call(Id id, std::uint32_t events) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  const std::shared_ptr<Source> source = found->second.source;  // it may remove itself
  source->on_ready(events);
}

// Otherwise a source is called again instead.
bool Engine::may_sleep() {
  if (!prepare_sleep_ || prepare_sleep_()) return again_.empty();
  call_again(worker_);
  return false;
}

// The leading thread sleeps in the set of all sources, without the turn.
void Engine::sleep(const Deadline& deadline) {
  if (serve_again()) return;
  if (!may_sleep()) return static_cast<void>(serve_again());
  const Duration limit = std::min<Duration>(kLongestSleep, deadline.remaining());
  epoll_event event;
  release();
  wait_for_events(inner_.get(), {&event, 1}, limit);
  acquire();
  serve_ready();
}

}  // namespace memspan::inline transport
