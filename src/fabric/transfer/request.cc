// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/request.h"

#include <utility>

#include "core/interrupt.h"

namespace memspan::transfer {
namespace {

// About a millisecond's work, for which a cancellation waits.
constexpr Quantum kQuantum{.bytes = std::uint64_t{4} << 20, .pieces = 4096};

}  // namespace

Status Request::set_completion_action(const std::function<void(CompletionAction&)>& change) {
  MutexLock lock(mutex_);
  if (result_.kind == TransferResult::Kind::kPosted)
    return {Code::kUnavailable, "the request is posted"};
  change(completion_action_);
  return Status::ok();
}

Status Request::set_on_complete(OnComplete on_complete) {
  MutexLock lock(mutex_);
  if (result_.kind == TransferResult::Kind::kPosted)
    return {Code::kUnavailable, "the request is posted"};
  on_complete_ = std::move(on_complete);
  return Status::ok();
}

Status Request::set_patience(std::optional<Duration> patience) {
  MutexLock lock(mutex_);
  if (result_.kind == TransferResult::Kind::kPosted)
    return {Code::kUnavailable, "the request is posted"};
  patience_ = patience;
  return Status::ok();
}

Result<int> Request::event() {
  MutexLock lock(mutex_);
  if (event_.is_valid()) return event_.descriptor();
  const bool is_over =
      result_.kind != TransferResult::Kind::kReady && result_.kind != TransferResult::Kind::kPosted;
  MEMSPAN_TRY_ASSIGN(event_, WakeEvent::create(), "making a request's event");
  if (is_over) event_.ring();
  return event_.descriptor();
}

TransferResult Request::result() const {
  MutexLock lock(mutex_);
  return result_;
}

Result<TransferResult> Request::wait(Deadline deadline) {
  MutexLock lock(mutex_);
  if (result_.kind == TransferResult::Kind::kReady)
    return Status(Code::kInvalidArgument, "the request was never posted");
  const PostedRequest now{.number = last_posting_, .peer = {}, .cursor = {}};
  while (is_posted(now))
    if (!wait_interruptibly(changed_, mutex_, deadline) && is_posted(now))
      return end_of_wait("timeout: the request is not over yet");
  return last_result_;
}

void Request::cancel() {
  MutexLock lock(mutex_);
  const PostedRequest now{.number = last_posting_, .peer = {}, .cursor = {}};
  if (is_posted(now)) cancelled_ = now.number;
  while (is_touching_ && last_posting_ == now.number)
    changed_.wait_until(mutex_, Deadline::never());
  if (is_posted(now))
    conclude({.kind = TransferResult::Kind::kCancelled, .status = {}, .moved = result_.moved});
}

void Request::wait_for_callback() {
  MutexLock lock(mutex_);
  while (calling_ && *calling_ != std::this_thread::get_id())
    changed_.wait_until(mutex_, Deadline::never());
}

Result<std::uint64_t> Request::begin() {
  MutexLock lock(mutex_);
  if (result_.kind == TransferResult::Kind::kPosted)
    return Status(Code::kUnavailable, "the request is posted");
  result_ = {.kind = TransferResult::Kind::kPosted, .status = {}, .moved = 0};
  if (event_.is_valid()) event_.silence();
  return ++last_posting_;
}

bool Request::is_posted(const PostedRequest& posted) const {
  return last_posting_ == posted.number && result_.kind == TransferResult::Kind::kPosted;
}

bool Request::is_current(const PostedRequest& posted) const {
  return is_posted(posted) && cancelled_ != posted.number;
}

bool Request::is_wanted(const PostedRequest& posted) const {
  MutexLock lock(mutex_);
  return is_current(posted);
}

bool Request::begin_to_touch(const PostedRequest& posted) {
  MutexLock lock(mutex_);
  if (!is_current(posted)) return false;
  is_touching_ = true;
  return true;
}

void Request::end_to_touch(const PostedRequest& posted) {
  MutexLock lock(mutex_);
  is_touching_ = false;
  if (last_posting_ == posted.number) result_.moved = posted.cursor.piece;
  changed_.notify_all();
}

Request::Progress Request::advance(PostedRequest& posted, Peers& peers) {
  {
    MutexLock lock(mutex_);
    if (!is_current(posted)) return Progress::kOver;
  }
  if (posted.peer == nullptr) {
    auto found = peers.find(peer_name_, Peers::Waiting::kNone);
    if (found.code() == Code::kStoreLost && may_wait_for_store(posted)) return Progress::kLater;
    if (!found.is_ok()) {
      fail(posted, found.status());
      return Progress::kOver;
    }
    posted.peer = std::move(found).value();
  }
  return posted.cursor.piece < pieces_->count() ? move(posted, peers) : tell(posted);
}

// Other requests continue during the wait.
bool Request::may_wait_for_store(PostedRequest& posted) {
  if (!posted.found_by) posted.found_by = Deadline::after(Peers::kPatience);
  return !posted.found_by->has_passed();
}

// Whether a posting that the peer refused is to be tried again.
bool Request::may_wait(PostedRequest& posted, const Peers& peers) {
  MutexLock lock(mutex_);
  if (!posted.registered_by)
    posted.registered_by = Deadline::after(patience_.value_or(peers.patience_with(*posted.peer)));
  if (!posted.registered_by->has_passed()) return true;
  if (!patience_) peers.note_waited_in_vain(*posted.peer);
  return false;
}

Request::Progress Request::move(PostedRequest& posted, const Peers& peers) {
  if (!begin_to_touch(posted)) return Progress::kOver;
  CopyEngine engine(*posted.peer, direction_, *pieces_, posted.cursor, posted.peer->device());
  Status status = engine.move(kQuantum);
  posted.cursor = engine.cursor();
  end_to_touch(posted);
  if (status.is_ok() && engine.is_missing()) status = engine.fetch();
  if (status.is_ok()) return Progress::kMore;
  if (engine.is_refused() && may_wait(posted, peers)) return Progress::kLater;
  fail(posted, std::move(status));
  return Progress::kOver;
}

Request::Progress Request::tell(PostedRequest& posted) {
  if (!begin_to_touch(posted)) return Progress::kOver;
  CompletionAction action;
  {
    MutexLock lock(mutex_);
    action = completion_action_;
  }
  Status status = posted.peer->notify(sender_, action);
  if (status.code() == Code::kTimeout) {
    end_to_touch(posted);
    return Progress::kWaits;
  }
  if (status.is_ok())
    finish(posted,
           {.kind = TransferResult::Kind::kDone, .status = {}, .moved = posted.cursor.piece});
  else
    fail(posted, std::move(status));
  return Progress::kOver;
}

void Request::fail(const PostedRequest& posted, Status why) {
  finish(posted, {.kind = TransferResult::Kind::kFailed,
                  .status = std::move(why),
                  .moved = posted.cursor.piece});
}

// It is over only when nothing is touched any more.
void Request::finish(const PostedRequest& posted, const TransferResult& result) {
  OnComplete on_complete;
  {
    MutexLock lock(mutex_);
    is_touching_ = false;
    changed_.notify_all();
    const bool was_interrupted =
        cancelled_ == posted.number && result.kind == TransferResult::Kind::kFailed;
    if (!is_posted(posted) || was_interrupted) return;  // cancel() concludes it
    conclude(result);
    if (!on_complete_) return;
    on_complete = on_complete_;
    calling_ = std::this_thread::get_id();
  }
  on_complete(result);
  MutexLock lock(mutex_);
  calling_.reset();
  changed_.notify_all();
}

void Request::conclude(TransferResult result) {
  result_ = std::move(result);
  last_result_ = result_;
  if (event_.is_valid()) event_.ring();
  changed_.notify_all();
}

}  // namespace memspan::transfer
