// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/worker.h"

#include <fmt/format.h>
#include <poll.h>

#include "core/thread.h"

namespace memspan::transfer {
namespace {

// The peer whose mailbox is full may die while a child of its own keeps that open.
constexpr int kLookAgainMs = 1000;
// No peer says that it has registered something.
constexpr int kTryAgainMs = 1;

Status endpoint_is_gone() {
  return {Code::kUnavailable, "the endpoint has been destroyed"};
}

}  // namespace

Result<std::shared_ptr<Worker>> Worker::create() {
  auto wake = WakeEvent::create();
  if (!wake.is_ok()) return wake.status();
  return std::shared_ptr<Worker>(new Worker(std::move(wake).value()));
}

Status Worker::need_thread() {
  if (is_ending_) return endpoint_is_gone();
  if (thread_) return Status::ok();
  auto thread = start_thread("an endpoint", [this] { run(); });
  if (!thread.is_ok()) return thread.status();
  thread_ = std::move(thread).value();
  thread_id_ = thread_->get_id();
  return Status::ok();
}

Status Worker::post(const std::shared_ptr<Request>& request, Peers& peers) {
  MutexLock lock(mutex_);
  MEMSPAN_PASS(need_thread());
  MEMSPAN_TRY_ASSIGN(const std::uint64_t posting, request->begin(), "posting");
  queue_.push_back({request, &peers, Run{.number = posting, .peer = {}, .cursor = {}}});
  wake_.ring();
  return Status::ok();
}

Status Worker::set_down(Down down) {
  MutexLock lock(mutex_);
  if (down) MEMSPAN_PASS(need_thread());
  down_ = std::move(down);
  while (is_calling_ && thread_id_ != std::this_thread::get_id())
    called_.wait_until(mutex_, Deadline::never());
  return Status::ok();
}

void Worker::note_down(const std::string& peer) {
  MutexLock lock(mutex_);
  if (!down_ || is_ending_) return;
  ended_peers_.push_back(peer);
  wake_.ring();
}

bool Worker::is_own_thread() const {
  MutexLock lock(mutex_);
  return thread_id_ == std::this_thread::get_id();
}

void Worker::end() {
  std::optional<std::thread> thread;
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
    thread = std::exchange(thread_, std::nullopt);
  }
  wake_.ring();
  if (thread) thread->join();
}

void Worker::run() {
  while (true) {
    std::optional<Posted> posted;
    {
      MutexLock lock(mutex_);
      if (is_ending_) break;
      posted = next();
    }
    tell_down();
    if (!posted || !waiting_.empty() || !later_.empty())
      wait(posted ? Patience::kNone : Patience::kUntilRung);
    if (!posted) continue;
    const auto progress = posted->request->advance(posted->run, *posted->peers);
    if (progress == Request::Progress::kWaits) waiting_.push_back(std::move(*posted));
    if (progress == Request::Progress::kLater) later_.push_back(std::move(*posted));
    if (progress != Request::Progress::kMore) continue;
    MutexLock lock(mutex_);
    queue_.push_back(std::move(*posted));
  }
  fail_all();
}

std::optional<Worker::Posted> Worker::next() {
  if (queue_.empty()) return std::nullopt;
  Posted posted = std::move(queue_.front());
  queue_.pop_front();
  return posted;
}

void Worker::tell_down() {
  while (true) {
    std::string peer;
    Down down;
    {
      MutexLock lock(mutex_);
      if (ended_peers_.empty()) return;
      peer = std::move(ended_peers_.front());
      ended_peers_.pop_front();
      down = down_;
      is_calling_ = true;
    }
    if (down) down(peer);
    MutexLock lock(mutex_);
    is_calling_ = false;
    called_.notify_all();
  }
}

// Until somebody rings or a mailbox may have room; those who wait for one try again then.
void Worker::wait(Patience patience) {
  std::vector<pollfd> polled{{wake_.descriptor(), POLLIN, 0}};
  for (const Posted& posted : waiting_)
    polled.push_back({posted.run.peer->mailbox().get(), POLLOUT, 0});
  const int longest = !later_.empty() ? kTryAgainMs : waiting_.empty() ? -1 : kLookAgainMs;
  const int ready = ::poll(polled.data(), polled.size(), patience == Patience::kNone ? 0 : longest);
  const bool is_time_over = ready == 0 && patience == Patience::kUntilRung;
  wake_.silence();
  std::vector<Posted> still_waiting;
  MutexLock lock(mutex_);
  for (Posted& posted : later_) queue_.push_back(std::move(posted));
  later_.clear();
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    if (is_time_over || polled[i + 1].revents != 0)
      queue_.push_back(std::move(waiting_[i]));
    else
      still_waiting.push_back(std::move(waiting_[i]));
  }
  waiting_ = std::move(still_waiting);
}

void Worker::fail_all() {
  std::deque<Posted> left;
  {
    MutexLock lock(mutex_);
    left.swap(queue_);
  }
  for (Posted& posted : waiting_) left.push_back(std::move(posted));
  for (Posted& posted : later_) left.push_back(std::move(posted));
  waiting_.clear();
  later_.clear();
  for (const Posted& posted : left) posted.request->fail(posted.run, endpoint_is_gone());
}

}  // namespace memspan::transfer
