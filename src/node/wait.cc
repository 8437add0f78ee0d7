// SPDX-License-Identifier: Apache-2.0
#include "node/wait.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/wait.h>

#include <cstring>

#include "core/log.h"
#include "node/event_count.h"
#include "observe/counters.h"

namespace memspan::inline node {
namespace {

// Yielding costs about a microsecond, being woken a few tens: sleep when that no longer matters.
constexpr auto kAwake = std::chrono::microseconds(200);
// The longest spin while spins end waits, and that of a wait that tries whether they do again
// (docs/architecture.md, "Waiting", has the whole sequence).
constexpr auto kSpin = std::chrono::milliseconds(1);
constexpr auto kTry = std::chrono::microseconds(100);
// While spins end waits, sleep later: a sleeper finds its core taken, or wakes on the peer's core.
constexpr auto kAwakeWhereSpinsHelp = std::chrono::milliseconds(10);
// A wait without a limit reads the clock only after this many yields.
constexpr int kYieldsPerLook = 8;
// No doorbell rings for a plain store through shmem_ptr, so a sleeper also looks by itself. It is
// late by at most this part of its wait, within these bounds.
constexpr int kNapsInWait = 10;
constexpr Duration kLeastNap = std::chrono::milliseconds(1);
constexpr Duration kLongestNap = std::chrono::milliseconds(50);
// Peers may keep putting to this process, but not what it waits for. After a few rings in vain it
// naps without a doorbell. Each ring costs its caller a system call, and then comes at most once in
// this time.
constexpr int kRingsInVain = 3;
constexpr auto kShortNap = std::chrono::microseconds(200);
constexpr auto kReportEvery = std::chrono::seconds(60);

// A wait longer than this marks itself as stuck while some peer has begun to leave.
constexpr auto kStuckAfter = std::chrono::milliseconds(300);
// A process that waits this long while a peer has begun to leave logs that once.
constexpr auto kPatienceWithEnds = std::chrono::seconds(1);

MEMSPAN_REMEDY(
    kPeerLost, "peer-lost",
    "The call needs a process that died, left the job or cannot be reached.",
    "Read its last lines, its core file and `dmesg`: that failure is the cause. If it left without "
    "one, make the same collective calls on all PEs before shmem_finalize.");
MEMSPAN_REMEDY(kStillWaiting, "still-waiting",
               "The call has waited for another PE for a minute or longer. It may still succeed.",
               "Run `memspan-top` on its host: the PE that waits for no other PE blocks the rest.");

std::string describe_end(int wait_status) {
  switch (wait_status) {
    case kUnseenEnd:
      return "died";
    case kReplacedProgram:
      return "left the job without shmem_finalize, as exec() does,";
    case kEndedByExit:
      return "ended (exit or the return of main) without shmem_finalize";
    case kEndedByFinalize:
      return "called shmem_finalize";
    case kDeparted:
      return "left";
    case kConnectionLost:
      return "cannot be reached any more: the connection to it broke, or it fell silent";
  }
  if (WIFSIGNALED(wait_status))
    return fmt::format("died (killed by signal {}, {})", WTERMSIG(wait_status),
                       strsignal(WTERMSIG(wait_status)));
  return fmt::format("died (exited with code {} without leaving the job)",
                     WEXITSTATUS(wait_status));
}

// The end of a peer that has begun to leave, in place of a status of wait(2).
int end_of(const PeerSlot& peer) {
  return peer.end_kind.load(std::memory_order_relaxed) == EndKind::kExit ? kEndedByExit
                                                                         : kEndedByFinalize;
}

std::string name_of(const WaitContext& place, int rank) {
  return place.name_of ? place.name_of(rank) : fmt::format("PE {}", rank);
}

Deadline within_limit(Deadline deadline, Duration limit) {
  return limit == Duration::zero() ? deadline : deadline.within(limit);
}

// The lowest rank of the others that have gone; -1 when none has.
int first_gone(const WaitContext& place) {
  for (int rank = 0; rank < place.segment->peers(); ++rank)
    if (rank != place.rank && place.is_gone(rank)) return rank;
  return -1;
}

}  // namespace

int first_dead_peer(const NodeSegment& segment) {
  int first = -1;
  for (int rank = 0; rank < segment.peers(); ++rank)
    if (segment.peer(rank).is_dead()) first = earlier_lost(segment, first, rank);
  return first;
}

int earlier_lost(const NodeSegment& segment, int one, int other) {
  if (one < 0) return other;
  // The place among the deaths; the last one for 0.
  const auto place_of = [&](int rank) {
    return segment.peer(rank).death.load(std::memory_order_acquire) - 1;
  };
  return place_of(other) < place_of(one) ? other : one;
}

Status lost_peer(const WaitContext& place, int rank, std::string_view when) {
  const PeerSlot& peer = place.segment->peer(rank);
  const bool is_noted = peer.is_dead();
  return {Code::kPeerLost,
          fmt::format("{} (process {}) {}{}{}", name_of(place, rank), peer.pid.load(),
                      describe_end(is_noted ? peer.wait_status.load() : end_of(peer)), when,
                      kPeerLost)};
}

void acknowledge_deaths(WaitContext& place) {
  place.known_alarms.store(place.segment->header().alarms.load(std::memory_order_acquire),
                           std::memory_order_relaxed);
}

void tell_of_end(WaitContext& place, std::string_view what, Duration waited) {
  if (waited < kPatienceWithEnds) return;
  const int first = first_gone(place);
  if (first < 0 || place.has_warned_of_end.exchange(true)) return;
  const PeerSlot& peer = place.segment->peer(first);
  log_line(LogLevel::kWarn,
           fmt::format("{} waits, and {} (process {}) {}: nothing comes from there any more", what,
                       name_of(place, first), peer.pid.load(), describe_end(end_of(peer))));
}

SlowPath::SlowPath(WaitContext& place, WaitsFor kind, const char* what, Deadline deadline,
                   bool knows_whom_it_needs)
    : place_(place),
      turn_(place.engine),
      kind_(kind),
      what_(what),
      knows_whom_it_needs_(knows_whom_it_needs),
      deadline_(within_limit(deadline, place.limit)),
      awake_(kAwake) {
  if (!deadline_.is_never() || is_recording()) since_ = Clock::now();
  if (place.spins == 0 || !place.spin_habit.spins_now()) return;
  const bool goes_well = place.spin_habit.goes_well();
  spins_until_ = since_.value_or(Clock::now()) + (goes_well ? kSpin : kTry);
  if (goes_well) awake_ = kAwakeWhereSpinsHelp;
}

SlowPath::~SlowPath() {
  if (spins_until_) place_.spin_habit.spun_well();
  if (stuck_ != 0) place_.self->stuck.store(0, std::memory_order_release);
  if (is_recording() && since_)
    record_wait(what_, *since_,
                told_ == nullptr ? kNobodyNamed : told_->awaited.load(std::memory_order_relaxed));
  if (told_ != nullptr) told_->end_wait();
}

void SlowPath::note_loss(int rank) {
  const int how = end_of(place_.segment->peer(rank));
  if (place_.segment->mark_lost(rank, how) && place_.on_loss) place_.on_loss(rank, how);
}

Status SlowPath::pause(int lost) {
  // While this thread naps, the engine's own thread progresses.
  if (place_.engine != nullptr && !is_sleeping_) place_.engine->progress();
  // Pairs with the release of mark_lost() and request_exit().
  std::uint32_t alarms = place_.segment->header().alarms.load(std::memory_order_acquire);
  if (alarms != place_.known_alarms.load(std::memory_order_relaxed)) {
    // Another thread may take this process out of the job at any time (mark_departed()).
    if (place_.self->state.load(std::memory_order_acquire) == PeerState::kLeft)
      return {Code::kUnavailable, "this process left while the call waited"};
    const bool tells_deaths =
        !knows_whom_it_needs_ || !place_.survives_deaths.load(std::memory_order_relaxed);
    MEMSPAN_PASS(tells_deaths ? alarm_status() : exit_status());
  }
  if (lost >= 0) {
    // A peer that has only begun to leave is lost to all from now on, since it was needed.
    if (!place_.segment->peer(lost).is_dead()) note_loss(lost);
    return death_status(lost);
  }
  if (spins_on()) return Status::ok();
  if (!is_patient_ && deadline_.is_never() && ++yields_ % kYieldsPerLook != 0) {
    sched_yield();
    return Status::ok();
  }
  return pause_by_the_clock();
}

bool SlowPath::spins_on() {
  if (!spins_until_) return false;
  cpu_pause();
  if (Clock::now() < *spins_until_) return true;
  spins_until_.reset();
  place_.spin_habit.spun_in_vain();
  return false;
}

Status SlowPath::pause_by_the_clock() {
  const auto now = Clock::now();
  if (!since_) since_ = now;
  if (now >= *since_ + (reports_ + 1) * kReportEvery) {
    ++reports_;
    log_line(LogLevel::kWarn, fmt::format("{} is still waiting after {:.0f} s{}", what_,
                                          to_seconds(now - *since_), kStillWaiting));
  }
  if (!deadline_.is_never() && now >= deadline_.when())
    return {Code::kTimeout, fmt::format("nothing came within {:.3f} s", to_seconds(now - *since_))};
  if (!knows_whom_it_needs_ && place_.has_ends()) MEMSPAN_PASS(end_status(now - *since_));
  is_patient_ = now - *since_ > awake_;
  nap_ = std::clamp<Duration>((now - *since_) / kNapsInWait, kLeastNap, kLongestNap);
  if (is_patient_ && told_ == nullptr) {
    told_ = &thread_counters();
    told_->begin_wait(what_, nanoseconds_of(*since_));
  }
  if (is_patient_ && is_interrupted()) return interruption();
  if (is_patient_)
    sleep();
  else
    sched_yield();
  return Status::ok();
}

// Sets the sleeping flags in one turn and sleeps in the next; the caller looks in between.
void SlowPath::sleep() {
  turn_.suspend();
  // The caller of this wait may also be in a turn.
  if (place_.engine != nullptr) place_.engine->rest_progress();
  if (!is_sleeping_) {
    if (rings_in_vain_ > kRingsInVain) futex_wait(place_.self->doorbell, doorbell_, kShortNap);
    return set_sleeping_flags();
  }
  futex_wait(place_.self->doorbell, doorbell_, nap_);
  const std::uint32_t rings = place_.self->doorbell.load(std::memory_order_acquire);
  if (rings == doorbell_) return;  // no ring, and the flags are still set
  doorbell_ = rings;
  is_sleeping_ = false;
  ++rings_in_vain_;
}

// From here on writers ring. The fence ensures that a writer that did not see the flag has stored
// before our next look at the condition.
void SlowPath::set_sleeping_flags() {
  is_sleeping_ = true;
  doorbell_ = place_.self->doorbell.load(std::memory_order_acquire);
  if (kind_ == WaitsFor::kData) place_.self->sleeps_for_data.store(1, std::memory_order_relaxed);
  place_.self->sleeps.store(1, std::memory_order_relaxed);
  place_.segment->header().anybody_sleeps.store(1, std::memory_order_release);
  fence_all_writers();
}

Status SlowPath::alarm_status() const {
  MEMSPAN_PASS(exit_status());
  // The first death is the cause; others may have ended because of it.
  int first = first_dead_peer(*place_.segment);
  if (first < 0) return Status::ok();  // a death that is still being marked: look again
  return death_status(first);
}

// It is unknown which store would end this wait. None can come once all others have begun to leave
// or are stuck in such waits themselves. A living PE of another node never counts as stuck, since
// its slot here does not show that: it may store.
Status SlowPath::end_status(Duration waited) {
  const int first = first_gone(place_);
  if (first < 0) return Status::ok();
  if (waited >= kStuckAfter && !place_.has_threads.load(std::memory_order_relaxed) &&
      is_everybody_stuck()) {
    note_loss(first);
    return death_status(first);
  }
  tell_of_end(place_, what_, waited);
  return Status::ok();
}

// Each waiter counts its looks. The first pass sees that all are stuck. The second begins after a
// moment at which all were, and records the counts. Once all have looked twice more in the same
// waits, no store is under way: the second of these looks began after the record.
bool SlowPath::is_everybody_stuck() {
  if (stuck_ == 0) stuck_ = (place_.stuck_waits.fetch_add(1) + std::uint64_t{1}) << 32;
  place_.self->stuck.store(++stuck_);
  seen_stuck_.resize(static_cast<std::size_t>(place_.segment->peers()));
  std::uint64_t& passes = seen_stuck_[place_.rank];
  bool have_all_looked = true;
  for (int rank = 0; rank < place_.segment->peers(); ++rank) {
    if (rank == place_.rank || place_.is_gone(rank)) continue;
    const std::uint64_t now = place_.segment->peer(rank).stuck.load();
    std::uint64_t& then = seen_stuck_[rank];
    if (now == 0 || (passes > 0 && now >> 32 != then >> 32)) {
      seen_stuck_.clear();
      return false;
    }
    have_all_looked = have_all_looked && now >= then + 2;
    if (passes < 2) then = now;
  }
  return ++passes > 2 && have_all_looked;
}

Status SlowPath::exit_status() const {
  const NodeHeader& header = place_.segment->header();
  if (header.exit_requested.load(std::memory_order_acquire) != 2) return Status::ok();
  return {Code::kUnavailable,
          fmt::format("{} asked the job to end with code {}",
                      name_of(place_, header.exit_rank.load()), header.exit_code.load())};
}

Status SlowPath::death_status(int rank) const {
  const double waited = since_ ? to_seconds(Clock::now() - *since_) : 0.0;
  return lost_peer(place_, rank, fmt::format(" while this call waited {:.3f} s", waited));
}

}  // namespace memspan::inline node
