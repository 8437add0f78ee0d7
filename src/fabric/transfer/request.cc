// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/request.h"

#include <poll.h>

#include "core/interrupt.h"
#include "core/thread.h"

namespace memspan::transfer {
namespace {

// About a millisecond's work, for which a cancellation waits.
constexpr Quantum kQuantum{.bytes = std::uint64_t{4} << 20, .pieces = 4096};

// The peer whose notification queue is full may die while a child of its own keeps that open.
constexpr int kLookAgainMs = 1000;
// No peer on another host reports that its queue has space.
constexpr int kAskAgainMs = 20;
// No peer reports that it has registered something.
constexpr int kTryAgainMs = 1;

// A wait of this thread ends when its worker ends or the request is being cancelled.
struct Ends {
  const std::atomic<bool>* worker = nullptr;
  const PostedRequest* posted = nullptr;
};
constinit thread_local Ends wait_ends;

int must_end() {
  const bool ends_now =
      wait_ends.worker->load(std::memory_order_relaxed) ||
      (wait_ends.posted != nullptr && !wait_ends.posted->request->is_wanted(*wait_ends.posted));
  return ends_now ? 1 : 0;
}

}  // namespace

Progress Request::advance(PostedRequest& posted) {
  if (!is_wanted(posted)) return Progress::kOver;
  if (posted.peer == nullptr) {
    auto found = posted.peers->find(peer_name_, Peers::Waiting::kNone);
    if (!posted.found_by) posted.found_by = Deadline::after(Peers::kPatience);
    // Other requests continue during the wait.
    if (found.code() == Code::kStoreLost && !posted.found_by->has_passed()) return Progress::kLater;
    if (!found.is_ok()) {
      finish(posted, found.status());
      return Progress::kOver;
    }
    posted.peer = std::move(found).value();
  }
  return posted.cursor.piece < pieces_->count() ? move(posted) : tell(posted);
}

Progress Request::move(PostedRequest& posted) {
  if (!begin_to_touch(posted)) return Progress::kOver;
  CopyEngine engine(*posted.peer, direction_, *pieces_, posted.cursor, posted.peer->device());
  Status status = engine.move(kQuantum);
  posted.cursor = engine.cursor();
  end_to_touch(posted);
  if (status.is_ok() && engine.is_missing()) status = engine.fetch();
  if (status.is_ok()) return Progress::kMore;
  if (engine.is_refused() && may_wait(posted)) return Progress::kLater;
  finish(posted, std::move(status));
  return Progress::kOver;
}

Progress Request::tell(PostedRequest& posted) {
  if (!begin_to_touch(posted)) return Progress::kOver;
  CompletionAction action;
  {
    MutexLock lock(mutex_);
    action = settings_.action;
  }
  Status status = posted.peer->notify(sender_, action);
  if (status.code() == Code::kTimeout) {
    end_to_touch(posted);
    return Progress::kWaits;
  }
  finish(posted, std::move(status));
  return Progress::kOver;
}

// It is over only when nothing is touched any more.
void Request::finish(const PostedRequest& posted, Status outcome) {
  using Kind = TransferResult::Kind;
  const TransferResult result{.kind = outcome.is_ok() ? Kind::kDone : Kind::kFailed,
                              .status = std::move(outcome),
                              .moved = posted.cursor.piece};
  std::function<void(const TransferResult&)> on_complete;
  {
    MutexLock lock(mutex_);
    is_touching_ = false;
    changed_.notify_all();
    const bool was_interrupted = cancelled_ == posted.number && result.kind == Kind::kFailed;
    if (!is_posted(posted.number) || was_interrupted) return;  // cancel() concludes it
    conclude(result);
    if (!settings_.on_complete) return;
    on_complete = settings_.on_complete;
    calling_ = std::this_thread::get_id();
  }
  on_complete(result);
  MutexLock lock(mutex_);
  calling_.reset();
  changed_.notify_all();
}

Status Worker::need_thread() {
  if (is_ending_) return {Code::kUnavailable, kDestroyed};
  if (thread_) return Status::ok();
  MEMSPAN_PASS_ASSIGN(thread_, start_thread("an endpoint", [this] { run(); }));
  thread_id_ = thread_->get_id();
  return Status::ok();
}

void Worker::run() {
  wait_ends.worker = &is_ending_;
  set_thread_interrupt_handler(must_end);
  while (true) {
    std::optional<PostedRequest> entry;
    {
      MutexLock lock(mutex_);
      if (is_ending_) break;
      if (!queue_.empty()) {
        entry = std::move(queue_.front());
        queue_.pop_front();
      }
    }
    report_peers_down();
    if (!entry || !waiting_.empty()) wait(entry ? Patience::kNone : Patience::kUntilRung);
    if (!entry) continue;
    wait_ends.posted = &*entry;
    set_thread_interrupt_handler(must_end);  // forgets an interruption of the request before
    entry->progress = entry->request->advance(*entry);
    wait_ends.posted = nullptr;
    if (entry->progress == Progress::kOver) continue;
    MutexLock lock(mutex_);
    if (entry->progress == Progress::kMore)
      queue_.push_back(std::move(*entry));
    else
      waiting_.push_back(std::move(*entry));
  }
  std::vector<PostedRequest> left = std::move(waiting_);
  {
    MutexLock lock(mutex_);
    std::move(queue_.begin(), queue_.end(), std::back_inserter(left));
    queue_.clear();
  }
  for (const PostedRequest& entry : left)
    entry.request->finish(entry, {Code::kUnavailable, kDestroyed});
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
// try again, and all that wait for something else.
void Worker::wait(Patience patience) {
  const auto is_later = [](const PostedRequest& entry) {
    return entry.progress == Progress::kLater;
  };
  std::vector<pollfd> polled{{wake_.descriptor(), POLLIN, 0}};
  int longest = waiting_.empty() ? -1 : kLookAgainMs;
  for (const PostedRequest& entry : waiting_) {
    const int descriptor = is_later(entry) ? -1 : entry.peer->queue_descriptor();
    polled.push_back({descriptor, POLLOUT, 0});
    if (descriptor < 0) longest = std::min(longest, is_later(entry) ? kTryAgainMs : kAskAgainMs);
  }
  const int ready = ::poll(polled.data(), polled.size(), patience == Patience::kNone ? 0 : longest);
  const bool is_time_over = ready == 0 && patience == Patience::kUntilRung;
  wake_.silence();
  std::vector<PostedRequest> still_waiting;
  MutexLock lock(mutex_);
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    if (is_time_over || is_later(waiting_[i]) || polled[i + 1].revents != 0)
      queue_.push_back(std::move(waiting_[i]));
    else
      still_waiting.push_back(std::move(waiting_[i]));
  }
  waiting_ = std::move(still_waiting);
}

}  // namespace memspan::transfer
