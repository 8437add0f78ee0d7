// SPDX-License-Identifier: Apache-2.0
// A transfer that is prepared once and posted any number of times, one after the other. The worker
// of its endpoint carries it out, a share at a time. At the end it may put a message into the
// peer's notification queue and add to one of the peer's counters.
//
//   ready ──post()──► posted ──► over ──post()──► posted ...
#pragma once

#include <thread>

#include "core/interrupt.h"
#include "fabric/transfer/copy_engine.h"
#include "fabric/transfer/notification_queue.h"

namespace memspan::transfer {

inline constexpr const char* kDestroyed = "the endpoint has been destroyed";

class Request;

// A value.
struct TransferResult {
  enum class Kind { kReady, kPosted, kDone, kFailed, kCancelled };
  Kind kind = Kind::kReady;
  Status status;            // why it failed
  std::uint64_t moved = 0;  // whole pieces; if one failed, its number
};

// The outcome of a share of a posting. kWaits: the peer's notification queue is full. kLater: the
// peer has to register something, or the store is away.
enum class Progress { kMore, kWaits, kLater, kOver };

// One posting, as the worker carries it out.
struct PostedRequest {
  std::shared_ptr<Request> request;
  Peers* peers = nullptr;
  std::uint64_t number = 0;
  std::shared_ptr<Peer> peer = {};             // once it has begun
  std::optional<Deadline> registered_by = {};  // once it waits for a registration
  std::optional<Deadline> found_by = {};       // once it waits for a store that is away
  Cursor cursor = {};
  Progress progress = Progress::kMore;
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

  // The bytes of all its pieces, counted at each call.
  std::uint64_t bytes() const { return bytes_of(*pieces_); }
  struct Settings {
    CompletionAction action;
    // Called on the worker's thread when it is over, but not when it was cancelled. It may post the
    // request again. Empty: no call.
    std::function<void(const TransferResult&)> on_complete;
    // How long each posting waits for what the peer has not registered yet; none: as
    // Peers::patience_with() says.
    std::optional<Duration> patience;
  };
  // Calls change(settings). kUnavailable while it is posted.
  template <typename Change>
  Status set(Change change) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    MEMSPAN_PASS(check_not_posted());
    change(settings_);
    return Status::ok();
  }
  // A descriptor that is readable from when it is over until it is posted again. Borrowed.
  Result<int> event() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (event_.is_valid()) return event_.descriptor();
    const bool is_over = result_.kind != TransferResult::Kind::kReady &&
                         result_.kind != TransferResult::Kind::kPosted;
    MEMSPAN_TRY_ASSIGN(event_, WakeEvent::create(), "making a request's event");
    if (is_over) event_.ring();
    return event_.descriptor();
  }

  TransferResult result() const MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return result_;
  }
  // Waits until the current posting is over, also if the request is posted again by then. kTimeout
  // leaves it as it is. kInvalidArgument: it was never posted.
  Result<TransferResult> wait(Deadline deadline) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (result_.kind == TransferResult::Kind::kReady)
      return Status(Code::kInvalidArgument, "the request was never posted");
    const std::uint64_t now = last_posting_;
    while (is_posted(now))
      if (!wait_interruptibly(changed_, mutex_, deadline) && is_posted(now))
        return end_of_wait("timeout: the request is not over yet");
    return last_result_;
  }
  // Afterwards neither end is touched, nor is the peer notified. A request that is over stays so.
  void cancel() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const std::uint64_t now = last_posting_;
    if (is_posted(now)) cancelled_ = now;
    while (is_touching_ && last_posting_ == now) changed_.wait_until(mutex_, Deadline::never());
    if (is_posted(now))
      conclude({.kind = TransferResult::Kind::kCancelled, .status = {}, .moved = result_.moved});
  }
  // Waits until no callback runs, except the caller's own.
  void wait_for_callback() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (calling_ && *calling_ != std::this_thread::get_id())
      changed_.wait_until(mutex_, Deadline::never());
  }

  // For the worker. begin() gives the posting's number; kUnavailable while it is posted.
  Result<std::uint64_t> begin() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    MEMSPAN_PASS(check_not_posted());
    result_ = {.kind = TransferResult::Kind::kPosted, .status = {}, .moved = 0};
    if (event_.is_valid()) event_.silence();
    return ++last_posting_;
  }
  // Does a share.
  Progress advance(PostedRequest& posted) MEMSPAN_EXCLUDES(mutex_) {
    if (!is_wanted(posted)) return Progress::kOver;
    if (posted.peer == nullptr) {
      auto found = posted.peers->find(peer_name_, Peers::Waiting::kNone);
      if (!posted.found_by) posted.found_by = Deadline::after(Peers::kPatience);
      // Other requests continue during the wait.
      if (found.code() == Code::kStoreLost && !posted.found_by->has_passed())
        return Progress::kLater;
      if (!found.is_ok()) {
        finish(posted, found.status());
        return Progress::kOver;
      }
      posted.peer = std::move(found).value();
    }
    return posted.cursor.piece < pieces_->count() ? move(posted) : tell(posted);
  }
  // False: it is over, or being cancelled.
  bool is_wanted(const PostedRequest& posted) const MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return is_current(posted);
  }
  // Ends it with this outcome, unless it is over. It is over only when nothing is touched any more.
  void finish(const PostedRequest& posted, Status outcome) MEMSPAN_EXCLUDES(mutex_) {
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

 private:
  // About a millisecond's work, for which a cancellation waits.
  static constexpr Quantum kQuantum{.bytes = std::uint64_t{4} << 20, .pieces = 4096};

  Status check_not_posted() const MEMSPAN_REQUIRES(mutex_) {
    if (result_.kind != TransferResult::Kind::kPosted) return Status::ok();
    return {Code::kUnavailable, "the request is posted"};
  }
  // That posting is so far not over; current: not being cancelled either.
  bool is_posted(std::uint64_t number) const MEMSPAN_REQUIRES(mutex_) {
    return last_posting_ == number && result_.kind == TransferResult::Kind::kPosted;
  }
  bool is_current(const PostedRequest& posted) const MEMSPAN_REQUIRES(mutex_) {
    return is_posted(posted.number) && cancelled_ != posted.number;
  }
  // False: it is over, or being cancelled. Otherwise the buffers, or the peer, are touched from now
  // on.
  bool begin_to_touch(const PostedRequest& posted) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!is_current(posted)) return false;
    is_touching_ = true;
    return true;
  }
  void end_to_touch(const PostedRequest& posted) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    is_touching_ = false;
    if (last_posting_ == posted.number) result_.moved = posted.cursor.piece;
    changed_.notify_all();
  }
  // Whether a posting that the peer refused is to be tried again.
  bool may_wait(PostedRequest& posted) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!posted.registered_by)
      posted.registered_by =
          Deadline::after(settings_.patience.value_or(posted.peers->patience_with(*posted.peer)));
    if (!posted.registered_by->has_passed()) return true;
    if (!settings_.patience) posted.peers->note_waited_in_vain(*posted.peer);
    return false;
  }
  Progress move(PostedRequest& posted) MEMSPAN_EXCLUDES(mutex_) {
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
  Progress tell(PostedRequest& posted) MEMSPAN_EXCLUDES(mutex_) {
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
  void conclude(TransferResult result) MEMSPAN_REQUIRES(mutex_) {
    result_ = std::move(result);
    last_result_ = result_;
    if (event_.is_valid()) event_.ring();
    changed_.notify_all();
  }

  const Direction direction_;
  const std::string sender_;
  const std::string peer_name_;
  const std::unique_ptr<const Pieces> pieces_;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  TransferResult result_ MEMSPAN_GUARDED_BY(mutex_);
  Settings settings_ MEMSPAN_GUARDED_BY(mutex_);
  TransferResult last_result_ MEMSPAN_GUARDED_BY(mutex_);  // of the last posting that is over
  WakeEvent event_ MEMSPAN_GUARDED_BY(mutex_);
  std::uint64_t last_posting_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::uint64_t cancelled_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // the posting that is to end
  bool is_touching_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::optional<std::thread::id> calling_ MEMSPAN_GUARDED_BY(mutex_);  // the callback, and where
};

}  // namespace memspan::transfer
