// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/request.h"

#include <utility>

#include "core/interrupt.h"
#include "fabric/transfer/counters.h"

namespace memspan::transfer {
namespace {

// About a millisecond's work, for which a cancellation waits.
constexpr Share kShare{.bytes = std::uint64_t{4} << 20, .pieces = 4096};
constexpr Duration kMappingPatience = std::chrono::seconds(5);

}  // namespace

Status Request::set_afterwards(const std::function<void(Afterwards&)>& change) {
  MutexLock lock(mutex_);
  if (outcome_.kind == Outcome::Kind::kPosted) return {Code::kUnavailable, "the request is posted"};
  change(afterwards_);
  return Status::ok();
}

Status Request::set_callback(Over over) {
  MutexLock lock(mutex_);
  if (outcome_.kind == Outcome::Kind::kPosted) return {Code::kUnavailable, "the request is posted"};
  over_ = std::move(over);
  return Status::ok();
}

Status Request::set_patience(std::optional<Duration> patience) {
  MutexLock lock(mutex_);
  if (outcome_.kind == Outcome::Kind::kPosted) return {Code::kUnavailable, "the request is posted"};
  patience_ = patience;
  return Status::ok();
}

Result<int> Request::event() {
  MutexLock lock(mutex_);
  if (event_.is_valid()) return event_.descriptor();
  const bool is_over =
      outcome_.kind != Outcome::Kind::kReady && outcome_.kind != Outcome::Kind::kPosted;
  MEMSPAN_TRY_ASSIGN(event_, WakeEvent::create(), "making a request's event");
  if (is_over) event_.ring();
  return event_.descriptor();
}

Outcome Request::outcome() const {
  MutexLock lock(mutex_);
  return outcome_;
}

Result<Outcome> Request::wait(Deadline deadline) {
  MutexLock lock(mutex_);
  if (outcome_.kind == Outcome::Kind::kReady)
    return Status(Code::kInvalidArgument, "the request was never posted");
  const Run now{.number = last_posting_, .peer = {}, .cursor = {}};
  while (is_posted(now))
    if (!wait_interruptibly(changed_, mutex_, deadline) && is_posted(now))
      return end_of_wait("timeout: the request is not over yet");
  return last_outcome_;
}

void Request::cancel() {
  MutexLock lock(mutex_);
  const Run now{.number = last_posting_, .peer = {}, .cursor = {}};
  if (is_posted(now)) cancelled_ = now.number;
  while (is_touching_ && last_posting_ == now.number)
    changed_.wait_until(mutex_, Deadline::never());
  if (is_posted(now))
    conclude({.kind = Outcome::Kind::kCancelled, .status = {}, .moved = outcome_.moved});
}

void Request::wait_for_callback() {
  MutexLock lock(mutex_);
  while (calling_ && *calling_ != std::this_thread::get_id())
    changed_.wait_until(mutex_, Deadline::never());
}

Result<std::uint64_t> Request::begin() {
  MutexLock lock(mutex_);
  if (outcome_.kind == Outcome::Kind::kPosted)
    return Status(Code::kUnavailable, "the request is posted");
  outcome_ = {.kind = Outcome::Kind::kPosted, .status = {}, .moved = 0};
  if (event_.is_valid()) event_.silence();
  return ++last_posting_;
}

bool Request::is_posted(const Run& run) const {
  return last_posting_ == run.number && outcome_.kind == Outcome::Kind::kPosted;
}

bool Request::is_current(const Run& run) const {
  return is_posted(run) && cancelled_ != run.number;
}

bool Request::begin_to_touch(const Run& run) {
  MutexLock lock(mutex_);
  if (!is_current(run)) return false;
  is_touching_ = true;
  return true;
}

void Request::end_to_touch(const Run& run) {
  MutexLock lock(mutex_);
  is_touching_ = false;
  if (last_posting_ == run.number) outcome_.moved = run.cursor.piece;
  changed_.notify_all();
}

Request::Progress Request::advance(Run& run, Peers& peers) {
  {
    MutexLock lock(mutex_);
    if (!is_current(run)) return Progress::kOver;
  }
  if (run.peer == nullptr) {
    auto found = peers.find(peer_name_);
    if (!found.is_ok()) {
      fail(run, found.status());
      return Progress::kOver;
    }
    run.peer = std::move(found).value();
  }
  return run.cursor.piece < pieces_->count() ? move(run, peers) : tell(run);
}

// Whether a posting that the peer refused is to be tried again.
bool Request::may_wait(Run& run, const Peers& peers) {
  MutexLock lock(mutex_);
  if (!run.registered_by)
    run.registered_by = Deadline::after(patience_.value_or(peers.patience_with(*run.peer)));
  if (!run.registered_by->has_passed()) return true;
  if (!patience_) peers.note_waited_in_vain(*run.peer);
  return false;
}

Request::Progress Request::move(Run& run, const Peers& peers) {
  if (!begin_to_touch(run)) return Progress::kOver;
  Mover mover(*run.peer, direction_, *pieces_, run.cursor);
  Status status = mover.move(kShare);
  run.cursor = mover.cursor();
  end_to_touch(run);
  if (status.is_ok() && mover.wanted_slice() != 0)
    status = run.peer->map_slice(mover.wanted_slice(), Deadline::after(kMappingPatience));
  if (status.is_ok()) return Progress::kMore;
  if (mover.is_refused() && may_wait(run, peers)) return Progress::kLater;
  fail(run, std::move(status));
  return Progress::kOver;
}

Request::Progress Request::tell(Run& run) {
  if (!begin_to_touch(run)) return Progress::kOver;
  Afterwards afterwards;
  {
    MutexLock lock(mutex_);
    afterwards = afterwards_;
  }
  Status status = tell_peer(run, afterwards);
  if (status.code() == Code::kTimeout) {
    end_to_touch(run);
    return Progress::kWaits;
  }
  if (status.is_ok())
    finish(run, {.kind = Outcome::Kind::kDone, .status = {}, .moved = run.cursor.piece});
  else
    fail(run, std::move(status));
  return Progress::kOver;
}

// kTimeout: its mailbox is full.
Status Request::tell_peer(const Run& run, const Afterwards& afterwards) const {
  MEMSPAN_PASS(run.peer->why_not_live());
  if (afterwards.message)
    MEMSPAN_PASS(send_notification(run.peer->mailbox(), {sender_, *afterwards.message}));
  if (afterwards.counter)
    add_to_counter(run.peer->counters(), *afterwards.counter, afterwards.value);
  return Status::ok();
}

void Request::fail(const Run& run, Status why) {
  finish(run,
         {.kind = Outcome::Kind::kFailed, .status = std::move(why), .moved = run.cursor.piece});
}

// Nothing is touched any more when it is over, and not before.
void Request::finish(const Run& run, const Outcome& outcome) {
  Over over;
  {
    MutexLock lock(mutex_);
    is_touching_ = false;
    changed_.notify_all();
    if (!is_posted(run)) return;
    conclude(outcome);
    if (!over_) return;
    over = over_;
    calling_ = std::this_thread::get_id();
  }
  over(outcome);
  MutexLock lock(mutex_);
  calling_.reset();
  changed_.notify_all();
}

void Request::conclude(Outcome outcome) {
  outcome_ = std::move(outcome);
  last_outcome_ = outcome_;
  if (event_.is_valid()) event_.ring();
  changed_.notify_all();
}

}  // namespace memspan::transfer
