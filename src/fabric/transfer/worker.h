// SPDX-License-Identifier: Apache-2.0
// The thread of an endpoint that carries out its requests and reports peers that have ended. It
// takes the requests in turn, so that a small one does not wait for a large one. It starts when it
// is first needed.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/fd.h"
#include "core/mutex.h"
#include "fabric/transfer/peers.h"
#include "fabric/transfer/request.h"

namespace memspan::transfer {

// Thread-safe. Shared by its endpoint, the endpoint's requests, and callbacks that report peers.
class Worker {
 public:
  static Result<std::shared_ptr<Worker>> create();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // `peers` outlives end(). kUnavailable after that, or while the request is posted.
  Status post(const std::shared_ptr<Request>& request, Peers& peers) MEMSPAN_EXCLUDES(mutex_);

  // Called with the name of each peer that ends from now on. After the return no call of the
  // earlier function runs, except the caller's own.
  using OnPeerDown = std::function<void(const std::string& peer)>;
  Status set_on_peer_down(OnPeerDown on_peer_down) MEMSPAN_EXCLUDES(mutex_);
  // A peer has ended. Does not wait.
  void note_peer_down(const std::string& peer) MEMSPAN_EXCLUDES(mutex_);

  bool is_own_thread() const MEMSPAN_EXCLUDES(mutex_);
  // Posted requests fail, and the thread ends, whatever it waits for. Not for that thread.
  void end() MEMSPAN_EXCLUDES(mutex_);

 private:
  struct QueueEntry {
    std::shared_ptr<Request> request;
    Peers* peers = nullptr;
    PostedRequest posted;
  };
  explicit Worker(WakeEvent wake) : wake_(std::move(wake)) {}
  Status need_thread() MEMSPAN_REQUIRES(mutex_);
  void run() MEMSPAN_EXCLUDES(mutex_);
  std::optional<QueueEntry> next() MEMSPAN_REQUIRES(mutex_);
  void report_peers_down() MEMSPAN_EXCLUDES(mutex_);
  enum class Patience { kNone, kUntilRung };
  void wait(Patience patience) MEMSPAN_EXCLUDES(mutex_);
  void fail_all() MEMSPAN_EXCLUDES(mutex_);

  const WakeEvent wake_;
  mutable Mutex mutex_;
  ConditionVariable called_;
  std::deque<QueueEntry> queue_ MEMSPAN_GUARDED_BY(mutex_);
  // Only for the thread: requests that wait for space in a queue, and for a registration.
  std::vector<QueueEntry> waiting_;
  std::vector<QueueEntry> later_;
  OnPeerDown on_peer_down_ MEMSPAN_GUARDED_BY(mutex_);
  std::deque<std::string> ended_peers_ MEMSPAN_GUARDED_BY(mutex_);
  bool is_calling_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::atomic<bool> is_ending_{false};  // set with mutex_; ends what the thread waits for
  std::optional<std::thread> thread_ MEMSPAN_GUARDED_BY(mutex_);
  std::thread::id thread_id_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::transfer
