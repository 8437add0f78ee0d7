// SPDX-License-Identifier: Apache-2.0
// A transfer that is prepared once and posted any number of times, one after the other. The worker
// of its endpoint carries it out, a share at a time. At the end it may put a message into the
// peer's notification queue and add to one of the peer's counters.
//
//   ready ──post()──► posted ──► over ──post()──► posted ...
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "core/fd.h"
#include "core/mutex.h"
#include "fabric/transfer/copy_engine.h"
#include "fabric/transfer/notification_queue.h"
#include "fabric/transfer/peers.h"
#include "fabric/transfer/pieces.h"

namespace memspan::transfer {

// A value.
struct TransferResult {
  enum class Kind { kReady, kPosted, kDone, kFailed, kCancelled };
  Kind kind = Kind::kReady;
  Status status;            // why it failed
  std::uint64_t moved = 0;  // whole pieces; if one failed, its number
};

// One posting, as the worker carries it out.
struct PostedRequest {
  std::uint64_t number = 0;
  std::shared_ptr<Peer> peer;                  // once it has begun
  std::optional<Deadline> registered_by = {};  // once it waits for a registration
  std::optional<Deadline> found_by = {};       // once it waits for a store that is away
  Cursor cursor;
};

// Thread-safe.
class Request {
 public:
  Request(Direction direction, std::string sender, std::string peer,
          std::unique_ptr<const Pieces> pieces)
      : direction_(direction),
        sender_(std::move(sender)),
        peer_name_(std::move(peer)),
        pieces_(std::move(pieces)) {}

  // kUnavailable while it is posted.
  Status set_completion_action(const std::function<void(CompletionAction&)>& change)
      MEMSPAN_EXCLUDES(mutex_);
  // The bytes of all its pieces, counted at each call.
  std::uint64_t bytes() const { return bytes_of(*pieces_); }
  // Called on the worker's thread when it is over, but not when it was cancelled. It may post the
  // request again. Empty: no call.
  using OnComplete = std::function<void(const TransferResult&)>;
  Status set_on_complete(OnComplete on_complete) MEMSPAN_EXCLUDES(mutex_);
  // How long each posting waits for what the peer has not registered yet; none: as
  // Peers::patience_with() says. kUnavailable while it is posted.
  Status set_patience(std::optional<Duration> patience) MEMSPAN_EXCLUDES(mutex_);
  // A descriptor that is readable from when it is over until it is posted again. Borrowed.
  Result<int> event() MEMSPAN_EXCLUDES(mutex_);

  TransferResult result() const MEMSPAN_EXCLUDES(mutex_);
  // Waits until the current posting is over, also if the request is posted again by then. kTimeout
  // leaves it as it is. kInvalidArgument: it was never posted.
  Result<TransferResult> wait(Deadline deadline) MEMSPAN_EXCLUDES(mutex_);
  // Afterwards neither end is touched, nor is the peer notified. A request that is over stays so.
  void cancel() MEMSPAN_EXCLUDES(mutex_);
  // Waits until no callback runs, except the caller's own.
  void wait_for_callback() MEMSPAN_EXCLUDES(mutex_);

  // For the worker. begin() gives the posting's number; kUnavailable while it is posted.
  Result<std::uint64_t> begin() MEMSPAN_EXCLUDES(mutex_);
  // Does a share. kWaits: the peer's notification queue is full. kLater: the peer has to register
  // something, or the store is away.
  enum class Progress { kMore, kWaits, kLater, kOver };
  Progress advance(PostedRequest& posted, Peers& peers) MEMSPAN_EXCLUDES(mutex_);
  // False: it is over, or being cancelled.
  bool is_wanted(const PostedRequest& posted) const MEMSPAN_EXCLUDES(mutex_);
  // Makes it fail, unless it is over.
  void fail(const PostedRequest& posted, Status why) MEMSPAN_EXCLUDES(mutex_);

 private:
  // Posted, and so far not over; current: not being cancelled either.
  bool is_posted(const PostedRequest& posted) const MEMSPAN_REQUIRES(mutex_);
  bool is_current(const PostedRequest& posted) const MEMSPAN_REQUIRES(mutex_);
  // False: it is over, or being cancelled. Otherwise the buffers, or the peer, are touched from now
  // on.
  bool begin_to_touch(const PostedRequest& posted) MEMSPAN_EXCLUDES(mutex_);
  void end_to_touch(const PostedRequest& posted) MEMSPAN_EXCLUDES(mutex_);
  static bool may_wait_for_store(PostedRequest& posted);
  bool may_wait(PostedRequest& posted, const Peers& peers) MEMSPAN_EXCLUDES(mutex_);
  Progress move(PostedRequest& posted, const Peers& peers) MEMSPAN_EXCLUDES(mutex_);
  Progress tell(PostedRequest& posted) MEMSPAN_EXCLUDES(mutex_);
  void finish(const PostedRequest& posted, const TransferResult& result) MEMSPAN_EXCLUDES(mutex_);
  void conclude(TransferResult result) MEMSPAN_REQUIRES(mutex_);

  const Direction direction_;
  const std::string sender_;
  const std::string peer_name_;
  const std::unique_ptr<const Pieces> pieces_;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  TransferResult result_ MEMSPAN_GUARDED_BY(mutex_);
  CompletionAction completion_action_ MEMSPAN_GUARDED_BY(mutex_);
  TransferResult last_result_ MEMSPAN_GUARDED_BY(mutex_);  // of the last posting that is over
  std::optional<Duration> patience_ MEMSPAN_GUARDED_BY(mutex_);
  OnComplete on_complete_ MEMSPAN_GUARDED_BY(mutex_);
  WakeEvent event_ MEMSPAN_GUARDED_BY(mutex_);
  std::uint64_t last_posting_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::uint64_t cancelled_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // the posting that is to end
  bool is_touching_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::optional<std::thread::id> calling_ MEMSPAN_GUARDED_BY(mutex_);  // the callback, and where
};

}  // namespace memspan::transfer
