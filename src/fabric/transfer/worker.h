// SPDX-License-Identifier: Apache-2.0
// The thread of an endpoint that carries out its requests and reports peers that have ended. It
// takes the requests in turn, so that a small one does not wait for a large one. It starts when it
// is first needed.
#pragma once

#include <poll.h>

#include <deque>
#include <thread>

#include "core/interrupt.h"
#include "core/thread.h"
#include "fabric/transfer/request.h"

namespace memspan::transfer {

// Thread-safe. Shared by its endpoint, the endpoint's requests, and callbacks that report peers.
class Worker {
 public:
  static Result<std::shared_ptr<Worker>> create() {
    MEMSPAN_PASS_ASSIGN(auto wake, WakeEvent::create());
    return std::shared_ptr<Worker>(new Worker(std::move(wake)));
  }

  // `peers` outlives end(). kUnavailable after that, or while the request is posted.
  Status post(const std::shared_ptr<Request>& request, Peers& peers) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    MEMSPAN_PASS(need_thread());
    MEMSPAN_TRY_ASSIGN(const std::uint64_t posting, request->begin(), "posting");
    queue_.push_back({.request = request, .peers = &peers, .number = posting});
    wake_.ring();
    return Status::ok();
  }

  // Called with the name of each peer that ends from now on. After the return no call of the
  // earlier function runs, except the caller's own.
  using OnPeerDown = std::function<void(const std::string& peer)>;
  Status set_on_peer_down(OnPeerDown on_peer_down) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (on_peer_down) MEMSPAN_PASS(need_thread());
    on_peer_down_ = std::move(on_peer_down);
    while (is_calling_ && thread_id_ != std::this_thread::get_id())
      called_.wait_until(mutex_, Deadline::never());
    return Status::ok();
  }
  // A peer has ended. Does not wait.
  void note_peer_down(const std::string& peer) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!on_peer_down_ || is_ending_) return;
    ended_peers_.push_back(peer);
    wake_.ring();
  }

  bool is_own_thread() const MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return thread_id_ == std::this_thread::get_id();
  }
  // Posted requests fail, and the thread ends, whatever it waits for. Not for that thread.
  void end() MEMSPAN_EXCLUDES(mutex_) {
    std::optional<std::thread> thread;
    {
      MutexLock lock(mutex_);
      is_ending_ = true;
      thread = std::exchange(thread_, std::nullopt);
    }
    wake_.ring();
    if (thread) thread->join();
  }

 private:
  // The peer whose notification queue is full may die while a child of its own keeps that open.
  static constexpr int kLookAgainMs = 1000;
  // No peer on another host reports that its queue has space.
  static constexpr int kAskAgainMs = 20;
  // No peer reports that it has registered something.
  static constexpr int kTryAgainMs = 1;

  static inline constinit thread_local const Worker* own_ = nullptr;  // whose thread this is
  // A wait of this thread ends when its worker ends or the request is being cancelled.
  static int must_end() {
    const PostedRequest* const posted = own_->posted_;
    const bool ends_now = own_->is_ending_.load(std::memory_order_relaxed) ||
                          (posted != nullptr && !posted->request->is_wanted(*posted));
    return ends_now ? 1 : 0;
  }

  explicit Worker(WakeEvent wake) : wake_(std::move(wake)) {}
  Status need_thread() MEMSPAN_REQUIRES(mutex_) {
    if (is_ending_) return {Code::kUnavailable, kDestroyed};
    if (thread_) return Status::ok();
    MEMSPAN_PASS_ASSIGN(thread_, start_thread("an endpoint", [this] { run(); }));
    thread_id_ = thread_->get_id();
    return Status::ok();
  }
  void run() MEMSPAN_EXCLUDES(mutex_) {
    own_ = this;
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
      posted_ = &*entry;
      set_thread_interrupt_handler(must_end);  // forgets an interruption of the request before
      entry->progress = entry->request->advance(*entry);
      posted_ = nullptr;
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
  void report_peers_down() MEMSPAN_EXCLUDES(mutex_) {
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
  enum class Patience { kNone, kUntilRung };
  // Waits for a ring, or until a notification queue may have space. Requests that wait for space
  // then try again, and all that wait for something else.
  void wait(Patience patience) MEMSPAN_EXCLUDES(mutex_) {
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
    const int ready =
        ::poll(polled.data(), polled.size(), patience == Patience::kNone ? 0 : longest);
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

  const WakeEvent wake_;
  mutable Mutex mutex_;
  ConditionVariable called_;
  std::deque<PostedRequest> queue_ MEMSPAN_GUARDED_BY(mutex_);
  // Only for the thread: requests that wait for space in a queue, for a registration or the store.
  std::vector<PostedRequest> waiting_;
  const PostedRequest* posted_ = nullptr;  // only for the thread: what it carries out
  OnPeerDown on_peer_down_ MEMSPAN_GUARDED_BY(mutex_);
  std::deque<std::string> ended_peers_ MEMSPAN_GUARDED_BY(mutex_);
  bool is_calling_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::atomic<bool> is_ending_{false};  // set with mutex_; ends what the thread waits for
  std::optional<std::thread> thread_ MEMSPAN_GUARDED_BY(mutex_);
  std::thread::id thread_id_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::transfer
