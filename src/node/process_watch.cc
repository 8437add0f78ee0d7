// SPDX-License-Identifier: Apache-2.0
#include "node/process_watch.h"

#include <array>
#include <utility>

#include "core/lifetime.h"
#include "node/process_image.h"

namespace memspan {
void follow_exit_request(const NodeSegment& segment) {
  if (segment.header().exit_requested.load(std::memory_order_acquire) != 2) return;
  flush_and_exit(segment.header().exit_code.load(std::memory_order_relaxed));
}

// Its address stays the same while the ProcessWatch moves.
class ProcessWatch::Watched {
 public:
  Watched(std::shared_ptr<EventLoop> loop, Told told)
      : loop_(std::move(loop)), told_(std::move(told)) {}

  // A connection carries nothing, so only its end is an event.
  Status watch(Sign sign, int descriptor) {
    if (descriptor < 0) return Status::ok();
    std::uint32_t events = 0;
    if (sign == Sign::kGone) events = EPOLLIN;
    MutexLock lock(mutex_);
    auto token = loop_->watch(descriptor, events, [this, sign](std::uint32_t) { tell(sign); });
    if (!token.is_ok()) return token.status();
    token_of(sign) = *token;
    return Status::ok();
  }

  void end() {
    for (const Sign sign : {Sign::kGone, Sign::kConnectionClosed})
      loop_->cancel(locked_token(sign));
  }

 private:
  EventLoop::Token& token_of(Sign sign) MEMSPAN_REQUIRES(mutex_) {
    return tokens_[static_cast<std::size_t>(sign)];
  }
  EventLoop::Token locked_token(Sign sign) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return token_of(sign);
  }
  // The descriptor stays ready, so the watch ends here. The call may end this object.
  void tell(Sign sign) {
    loop_->cancel(locked_token(sign));
    const Told told = told_;
    told(sign);
  }

  const std::shared_ptr<EventLoop> loop_;  // owners: all its users
  const Told told_;
  Mutex mutex_;
  std::array<EventLoop::Token, 2> tokens_ MEMSPAN_GUARDED_BY(mutex_) = {};
};

void ProcessWatch::End::operator()(Watched* watched) const {
  watched->end();
  delete watched;
}

ProcessWatch::ProcessWatch(std::unique_ptr<Watched> watched) : watched_(watched.release()) {}

Result<ProcessWatch> ProcessWatch::start(int own_end, int connection, Told told) {
  auto loop = EventLoop::process_singleton();
  if (!loop.is_ok()) return loop.status();
  ProcessWatch made(std::make_unique<Watched>(std::move(loop).value(), std::move(told)));
  MEMSPAN_TRY(made.watched_->watch(Sign::kGone, own_end), "watching a process");
  MEMSPAN_TRY(made.watched_->watch(Sign::kConnectionClosed, connection), "watching a process");
  return made;
}

Result<std::unique_ptr<PeerWatch>> PeerWatch::start(const NodeSegment& segment,
                                                    std::vector<Watched> watched) {
  std::unique_ptr<PeerWatch> made(new PeerWatch(segment));
  for (Watched& peer : watched) {
    const int rank = peer.rank;
    auto watch = ProcessWatch::start(
        peer.own_end.get(), peer.connection.get(),
        [raw = made.get(), rank](ProcessWatch::Sign sign) { raw->told(rank, sign); });
    if (!watch.is_ok()) return watch.status();
    made->entries_.push_back({std::move(peer), std::move(watch).value()});
  }
  return made;
}

PeerWatch::~PeerWatch() = default;

void PeerWatch::told(int rank, ProcessWatch::Sign sign) {
  if (mark_replaced(segment_, rank)) return pass_on(rank, kReplacedProgram);
  if (sign == ProcessWatch::Sign::kConnectionClosed) return;
  follow_exit_request(segment_);
  report(rank, kUnseenEnd);
}

bool PeerWatch::report(int rank, int how) {
  if (!segment_.mark_lost(rank, how)) return false;
  pass_on(rank, how);
  return true;
}

void PeerWatch::set_listener(Noted noted) {
  auto listener = std::make_shared<const Noted>(std::move(noted));
  MutexLock lock(mutex_);
  noted_.swap(listener);
}

void PeerWatch::pass_on(int rank, int how) {
  std::shared_ptr<const Noted> noted;
  {
    MutexLock lock(mutex_);
    noted = noted_;
  }
  if (noted != nullptr && *noted) (*noted)(rank, how);
}

void PeerWatch::forget_in_child() {
  for (Entry& entry : entries_) entry.watched.connection.reset();
}

}  // namespace memspan
