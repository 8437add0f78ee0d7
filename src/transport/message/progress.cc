// SPDX-License-Identifier: Apache-2.0
#include "transport/message/progress.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include <algorithm>
#include <span>
#include <utility>

#include "core/thread.h"

namespace memspan {
namespace {

constexpr Progress::Id kWake = 0;
constexpr int kEventsAtOnce = 16;
// Clients taken over at a time: each costs a waiting thread one system call per poll.
constexpr std::size_t kMostTaken = 4;

// Waits less than kSoon apart form a row. After so many in a row the clients are kept.
constexpr auto kSoon = std::chrono::microseconds(100);
constexpr int kWaitsInRow = 3;
// Clients are kept after a wait for the row's time divided by this.
constexpr int kKeptPart = 8;
constexpr Duration kLeastKept = std::chrono::microseconds(50);
constexpr Duration kMostKept = std::chrono::milliseconds(1);

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

thread_local int serving_depth = 0;

class Serving {
 public:
  Serving() { ++serving_depth; }
  ~Serving() { --serving_depth; }
};

// A thread of the library gets no signal of the program.
Result<std::thread> start_without_signals(auto run) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // If blocked, a fault of this thread would end the process despite a handler.
  for (const int fault : {SIGSEGV, SIGBUS}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto thread = start_thread("transport \"message\"", run);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

DescriptorBook::Page::Page() {
  for (auto& number : numbers) number.store(-1, std::memory_order_relaxed);
}

void DescriptorBook::add(int descriptor) {
  for (Page* page = &first_;; page = page->next.load()) {
    for (auto& number : page->numbers)
      if (int none = -1; number.compare_exchange_strong(none, descriptor)) return;
    if (page->next.load() != nullptr) continue;
    auto* fresh = new Page;
    if (Page* none = nullptr; !page->next.compare_exchange_strong(none, fresh)) delete fresh;
  }
}

void DescriptorBook::remove(int descriptor) {
  for (Page* page = &first_; page != nullptr; page = page->next.load())
    for (auto& number : page->numbers)
      if (int expected = descriptor; number.compare_exchange_strong(expected, -1)) return;
}

void DescriptorBook::give_up_in_child() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (Page* page = &first_; page != nullptr; page = page->next.load())
    for (auto& number : page->numbers)
      if (const int descriptor = number.load(); descriptor >= 0 && null >= 0)
        ::dup3(null, descriptor, O_CLOEXEC);
  if (null >= 0) ::close(null);
}

Result<std::unique_ptr<Progress>> Progress::start() {
  std::unique_ptr<Progress> made(new Progress);
  made->epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!made->epoll_.is_valid()) return Status::from_errno("epoll_create1");
  MEMSPAN_TRY_ASSIGN(made->wake_, WakeEvent::create(), "starting the progress thread");
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWake}};
  if (::epoll_ctl(made->epoll_.get(), EPOLL_CTL_ADD, made->wake_.descriptor(), &event) != 0)
    return Status::from_errno("epoll_ctl");
  made->book_.add(made->epoll_.get());
  made->book_.add(made->wake_.descriptor());
  MEMSPAN_TRY_ASSIGN(made->thread_, start_without_signals([p = made.get()] { p->run(); }),
                     "starting the progress thread");
  return made;
}

Progress::~Progress() {
  stop();
}

void Progress::stop() {
  if (is_forgotten_) {
    if (thread_.joinable()) thread_.detach();
    return;
  }
  ends_.store(true, std::memory_order_release);
  wake_.ring();
  if (thread_.joinable()) thread_.join();
}

Result<Progress::Id> Progress::add(int descriptor, std::shared_ptr<PollClient> client) {
  MutexLock lock(mutex_);
  const Id id = ++last_id_;
  epoll_event event{.events = EPOLLONESHOT, .data = {.u64 = id}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
    return Status::from_errno("epoll_ctl");
  book_.add(descriptor);
  clients_.emplace(id, Client{descriptor, std::move(client)});
  return id;
}

void Progress::watch(Id id, std::uint32_t events) {
  MutexLock lock(mutex_);
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  found->second.events = events;
  if (!found->second.is_taken) arm(id, found->second, events);
}

void Progress::arm(Id id, const Client& client, std::uint32_t events) {
  epoll_event event{.events = events | EPOLLONESHOT, .data = {.u64 = id}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, client.descriptor, &event);
}

void Progress::wake_at(Id id, Clock::time_point when) {
  MutexLock lock(mutex_);
  timers_.push_back({when, id});
  if (!is_serving() || std::this_thread::get_id() != thread_.get_id()) wake_.ring();
}

void Progress::remove(Id id) {
  std::shared_ptr<PollClient> last;  // destroyed without the mutex
  MutexLock lock(mutex_);
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.descriptor, nullptr);
  book_.remove(found->second.descriptor);
  std::erase(speakers_, id);
  std::erase(taken_, id);
  std::erase_if(timers_, [id](const Timer& timer) { return timer.id == id; });
  last = std::move(found->second.client);
  clients_.erase(found);
}

void Progress::poll() {
  if (is_forgotten_) return;
  std::array<Id, kMostTaken> taken;
  std::size_t count = 0;
  {
    MutexLock lock(mutex_);
    for (const Id id : taken_) taken[count++] = id;
  }
  for (std::size_t i = 0; i < count; ++i) call(Server::kCaller, taken[i], EPOLLIN | EPOLLOUT);
  if (count == 0) serve(Server::kCaller, Duration::zero());
}

void Progress::begin_polling() {
  if (is_forgotten_) return;
  MutexLock lock(mutex_);
  if (pollers_++ != 0) return;
  const auto now = Clock::now();
  soon_again_ = now - polled_until_ < kSoon ? std::min(soon_again_ + 1, kWaitsInRow) : 0;
  if (soon_again_ == 0) polled_since_ = now;
  // Gives back kept clients that are no longer speakers.
  std::erase_if(taken_, [this](Id id) MEMSPAN_REQUIRES(mutex_) {
    if (std::find(speakers_.begin(), speakers_.end(), id) != speakers_.end()) return false;
    arm_one(id);
    return true;
  });
  for (const Id id : speakers_) {
    const auto found = clients_.find(id);
    if (found == clients_.end() || found->second.is_taken || !found->second.client->can_be_asked())
      continue;
    found->second.is_taken = true;
    arm(id, found->second, 0);
    taken_.push_back(id);
  }
  has_taken_.store(!taken_.empty(), std::memory_order_relaxed);
}

// Events that no thread took wake the progress thread at once.
void Progress::end_polling() {
  if (is_forgotten_) return;
  MutexLock lock(mutex_);
  if (--pollers_ != 0) return;
  polled_until_ = Clock::now();
  if (soon_again_ < kWaitsInRow) return arm_taken();
  if (taken_.empty() || std::exchange(is_kept_, true)) return;
  wake_.ring();
}

// Only for the progress thread.
void Progress::give_back_kept() {
  MutexLock lock(mutex_);
  if (!is_kept_) return;
  if (pollers_ == 0 && Clock::now() - polled_until_ >= kept_for()) arm_taken();
  is_kept_ = !taken_.empty();
}

Duration Progress::kept_for() const {
  return std::clamp<Duration>((polled_until_ - polled_since_) / kKeptPart, kLeastKept, kMostKept);
}

void Progress::give_back() {
  if (is_forgotten_ || !has_taken_.load(std::memory_order_relaxed)) return;
  MutexLock lock(mutex_);
  arm_taken();
}

void Progress::arm_one(Id id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  found->second.is_taken = false;
  arm(id, found->second, found->second.events);
}

void Progress::arm_taken() {
  for (const Id id : taken_) arm_one(id);
  taken_.clear();
  has_taken_.store(false, std::memory_order_relaxed);
}

void Progress::note_speaker(Id id) {
  if (!speakers_.empty() && speakers_.front() == id) return;
  std::erase(speakers_, id);
  speakers_.insert(speakers_.begin(), id);
  if (speakers_.size() > kMostTaken) speakers_.pop_back();
}

bool Progress::is_serving() {
  return serving_depth > 0;
}

void Progress::forget_in_child() {
  is_forgotten_ = true;
  book_.give_up_in_child();
}

void Progress::run() {
  AdaptiveSpin spin;
  while (!ends_.load(std::memory_order_acquire)) {
    serve_timers();
    give_back_kept();
    const Duration limit = time_left();
    // Does not spin beside a polling thread: they may share a core.
    const auto look = [this] { return has_taken_ || serve(Server::kThread, Duration::zero()); };
    if (limit <= kMostKept || has_taken_ || !spin.wait(look)) serve(Server::kThread, limit);
  }
}

bool Progress::serve(Server server, Duration limit) {
  std::array<epoll_event, kEventsAtOnce> events;
  const int count = wait_for_events(epoll_.get(), events, limit);
  for (int i = 0; i < count; ++i) {
    if (events[static_cast<std::size_t>(i)].data.u64 == kWake) {
      // At the end the event stays set: no other thread sleeps here.
      if (server == Server::kThread && !ends_.load(std::memory_order_acquire)) wake_.silence();
      continue;
    }
    call(server, events[static_cast<std::size_t>(i)].data.u64,
         events[static_cast<std::size_t>(i)].events);
  }
  return count > 0;
}

void Progress::call(Server server, Id id, std::uint32_t events) {
  std::shared_ptr<PollClient> client;
  {
    MutexLock lock(mutex_);
    const auto found = clients_.find(id);
    if (found == clients_.end()) return;
    // It came before the client was taken over: the polling thread finds it.
    if (server == Server::kThread && found->second.is_taken && events != 0) return;
    client = found->second.client;
    if ((events & EPOLLIN) != 0 && !found->second.is_taken && client->can_be_asked())
      note_speaker(id);
  }
  const Serving serving;
  client->on_ready(events);
}

void Progress::serve_timers() {
  std::vector<Id> due;
  {
    MutexLock lock(mutex_);
    const auto now = Clock::now();
    const auto later = std::stable_partition(timers_.begin(), timers_.end(),
                                             [&](const Timer& timer) { return timer.when > now; });
    for (auto timer = later; timer != timers_.end(); ++timer) due.push_back(timer->id);
    timers_.erase(later, timers_.end());
  }
  for (const Id id : due) call(Server::kThread, id, 0);
}

Duration Progress::time_left() {
  MutexLock lock(mutex_);
  const auto now = Clock::now();
  Duration left = Duration::max();
  if (is_kept_) left = kept_for() - (pollers_ == 0 ? now - polled_until_ : Duration::zero());
  for (const Timer& timer : timers_) left = std::min<Duration>(left, timer.when - now);
  return std::max(left, Duration::zero());
}

}  // namespace memspan
