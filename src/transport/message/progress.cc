// SPDX-License-Identifier: Apache-2.0
#include "transport/message/progress.h"

#include <csignal>

#include <algorithm>

#include "core/thread.h"

namespace memspan {
namespace {

constexpr Progress::Id kWake = 0;
constexpr int kEventsAtOnce = 16;
// Clients taken over at a time: each costs a waiter a system call in each look.
constexpr std::size_t kMostTaken = 4;

thread_local int serving_depth = 0;

class Serving {
 public:
  Serving() { ++serving_depth; }
  ~Serving() { --serving_depth; }
};

// A thread of ours gets no signal of the program.
Result<std::thread> start_without_signals(auto run) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // Blocked, a fault of this thread would end the process whatever its handler does.
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
  for (std::size_t i = 0; i < count; ++i) call(taken[i], EPOLLIN | EPOLLOUT);
  if (count == 0) serve(Server::kCaller, 0);
}

void Progress::begin_polling() {
  if (is_forgotten_) return;
  MutexLock lock(mutex_);
  if (pollers_++ != 0) return;
  for (const Id id : speakers_) {
    const auto found = clients_.find(id);
    if (found == clients_.end() || !found->second.client->can_be_asked()) continue;
    found->second.is_taken = true;
    arm(id, found->second, 0);
    taken_.push_back(id);
  }
  has_taken_.store(!taken_.empty(), std::memory_order_relaxed);
}

// What came and nobody took wakes the thread at once.
void Progress::end_polling() {
  if (is_forgotten_) return;
  MutexLock lock(mutex_);
  if (--pollers_ == 0) arm_taken();
}

void Progress::give_back() {
  if (is_forgotten_ || !has_taken_.load(std::memory_order_relaxed)) return;
  MutexLock lock(mutex_);
  arm_taken();
}

void Progress::arm_taken() {
  for (const Id id : taken_) {
    const auto found = clients_.find(id);
    if (found == clients_.end()) continue;
    found->second.is_taken = false;
    arm(id, found->second, found->second.events);
  }
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
    const int limit_ms = timeout_ms();
    const auto look = [this] { return serve(Server::kThread, 0); };
    if (limit_ms == 0 || !spin.wait(look)) serve(Server::kThread, limit_ms);
  }
}

bool Progress::serve(Server server, int timeout_ms) {
  std::array<epoll_event, kEventsAtOnce> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, timeout_ms);
  for (int i = 0; i < count; ++i) {
    if (events[static_cast<std::size_t>(i)].data.u64 == kWake) {
      // The thread that ends leaves it on, for nobody else sleeps here.
      if (server == Server::kThread && !ends_.load(std::memory_order_acquire)) wake_.silence();
      continue;
    }
    call(events[static_cast<std::size_t>(i)].data.u64, events[static_cast<std::size_t>(i)].events);
  }
  return count > 0;
}

void Progress::call(Id id, std::uint32_t events) {
  std::shared_ptr<PollClient> client;
  {
    MutexLock lock(mutex_);
    const auto found = clients_.find(id);
    if (found == clients_.end()) return;
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
  for (const Id id : due) call(id, 0);
}

int Progress::timeout_ms() {
  MutexLock lock(mutex_);
  if (timers_.empty()) return -1;
  auto next = timers_.front().when;
  for (const Timer& timer : timers_) next = std::min(next, timer.when);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

}  // namespace memspan
