// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/worker.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "core/interrupt.h"
#include "core/thread.h"

namespace memspan::transfer {
namespace {

// The peer whose notification queue is full may die while a child of its own keeps that open.
constexpr int kLookAgainMs = 1000;
// No peer on another host reports that its queue has space.
constexpr int kAskAgainMs = 20;
// No peer reports that it has registered something.
constexpr int kTryAgainMs = 1;

// A wait of this thread ends when its worker ends or the request is being cancelled.
struct Ends {
  const std::atomic<bool>* worker = nullptr;
  const Request* request = nullptr;
  const PostedRequest* posted = nullptr;
};
constinit thread_local Ends ends;

int must_end() {
  const bool ends_now = ends.worker->load(std::memory_order_relaxed) ||
                        (ends.request != nullptr && !ends.request->is_wanted(*ends.posted));
  return ends_now ? 1 : 0;
}

Status endpoint_is_gone() {
  return {Code::kUnavailable, "the endpoint has been destroyed"};
}

}  // namespace

Result<std::shared_ptr<Worker>> Worker::create() {
  MEMSPAN_PASS_ASSIGN(auto wake, WakeEvent::create());
  return std::shared_ptr<Worker>(new Worker(std::move(wake)));
}

Status Worker::need_thread() {
  if (is_ending_) return endpoint_is_gone();
  if (thread_) return Status::ok();
  MEMSPAN_PASS_ASSIGN(thread_, start_thread("an endpoint", [this] { run(); }));
  thread_id_ = thread_->get_id();
  return Status::ok();
}

Status Worker::post(const std::shared_ptr<Request>& request, Peers& peers) {
  MutexLock lock(mutex_);
  MEMSPAN_PASS(need_thread());
  MEMSPAN_TRY_ASSIGN(const std::uint64_t posting, request->begin(), "posting");
  queue_.push_back({request, &peers, PostedRequest{.number = posting, .peer = {}, .cursor = {}}});
  wake_.ring();
  return Status::ok();
}

Status Worker::set_on_peer_down(OnPeerDown on_peer_down) {
  MutexLock lock(mutex_);
  if (on_peer_down) MEMSPAN_PASS(need_thread());
  on_peer_down_ = std::move(on_peer_down);
  while (is_calling_ && thread_id_ != std::this_thread::get_id())
    called_.wait_until(mutex_, Deadline::never());
  return Status::ok();
}

void Worker::note_peer_down(const std::string& peer) {
  MutexLock lock(mutex_);
  if (!on_peer_down_ || is_ending_) return;
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
  ends.worker = &is_ending_;
  set_thread_interrupt_handler(must_end);
  while (true) {
    std::optional<QueueEntry> entry;
    {
      MutexLock lock(mutex_);
      if (is_ending_) break;
      entry = next();
    }
    report_peers_down();
    if (!entry || !waiting_.empty() || !later_.empty())
      wait(entry ? Patience::kNone : Patience::kUntilRung);
    if (!entry) continue;
    ends.request = entry->request.get();
    ends.posted = &entry->posted;
    set_thread_interrupt_handler(must_end);  // forgets an interruption of the request before
    const auto progress = entry->request->advance(entry->posted, *entry->peers);
    ends.request = nullptr;
    if (progress == Request::Progress::kWaits) waiting_.push_back(std::move(*entry));
    if (progress == Request::Progress::kLater) later_.push_back(std::move(*entry));
    if (progress != Request::Progress::kMore) continue;
    MutexLock lock(mutex_);
    queue_.push_back(std::move(*entry));
  }
  fail_all();
}

std::optional<Worker::QueueEntry> Worker::next() {
  if (queue_.empty()) return std::nullopt;
  QueueEntry entry = std::move(queue_.front());
  queue_.pop_front();
  return entry;
}

void Worker::report_peers_down() {
  while (true) {
    std::string peer;
    OnPeerDown on_peer_down;
    {
      MutexLock lock(mutex_);
      if (ended_peers_.empty()) return;
      peer = std::move(ended_peers_.front());
      ended_peers_.pop_front();
      on_peer_down = on_peer_down_;
      is_calling_ = true;
    }
    if (on_peer_down) on_peer_down(peer);
    MutexLock lock(mutex_);
    is_calling_ = false;
    called_.notify_all();
  }
}

// Waits for a ring, or until a notification queue may have space. Requests that wait for space then
// try again.
void Worker::wait(Patience patience) {
  std::vector<pollfd> polled{{wake_.descriptor(), POLLIN, 0}};
  for (const QueueEntry& entry : waiting_)
    polled.push_back({entry.posted.peer->queue_descriptor(), POLLOUT, 0});
  const bool is_told =
      std::all_of(polled.begin(), polled.end(), [](const pollfd& one) { return one.fd >= 0; });
  const int longest = !later_.empty()    ? kTryAgainMs
                      : !is_told         ? kAskAgainMs
                      : waiting_.empty() ? -1
                                         : kLookAgainMs;
  const int ready = ::poll(polled.data(), polled.size(), patience == Patience::kNone ? 0 : longest);
  const bool is_time_over = ready == 0 && patience == Patience::kUntilRung;
  wake_.silence();
  std::vector<QueueEntry> still_waiting;
  MutexLock lock(mutex_);
  for (QueueEntry& entry : later_) queue_.push_back(std::move(entry));
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
  std::deque<QueueEntry> left;
  {
    MutexLock lock(mutex_);
    left.swap(queue_);
  }
  for (QueueEntry& entry : waiting_) left.push_back(std::move(entry));
  for (QueueEntry& entry : later_) left.push_back(std::move(entry));
  waiting_.clear();
  later_.clear();
  for (const QueueEntry& entry : left) entry.request->fail(entry.posted, endpoint_is_gone());
}

}  // namespace memspan::transfer
