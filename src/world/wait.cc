// SPDX-License-Identifier: Apache-2.0
#include "world/wait.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/wait.h>

#include <cstring>

#include "core/log.h"
#include "world/futex.h"

namespace memspan {
namespace {

// Yielding costs about a microsecond, being woken a few tens: sleep when that no longer matters.
constexpr auto kAwake = std::chrono::microseconds(200);
// A wait without a limit looks at the clock only after so many.
constexpr int kYieldsPerLook = 8;
// Nobody rings for a plain store through shmem_ptr, so a sleeper looks by itself this often.
constexpr auto kNap = std::chrono::milliseconds(1);
// Somebody puts to this process all the time, but not what it waits for. After a few rings in vain
// it naps without a bell, so that each ring, which costs its caller a system call, comes at most
// once in this time.
constexpr int kRingsInVain = 3;
constexpr auto kShortNap = std::chrono::microseconds(200);
constexpr auto kReportEvery = std::chrono::seconds(60);

std::string cause_of_death(int wait_status) {
  if (wait_status != -1 && WIFSIGNALED(wait_status))
    return fmt::format(" (killed by signal {}, {})", WTERMSIG(wait_status),
                       strsignal(WTERMSIG(wait_status)));
  if (wait_status != -1 && WIFEXITED(wait_status))
    return fmt::format(" (exited with code {} without leaving the job)", WEXITSTATUS(wait_status));
  return "";
}

Deadline within_limit(Deadline deadline, Duration limit) {
  return limit == Duration::zero() ? deadline : deadline.within(limit);
}

}  // namespace

int first_dead_peer(const Board& board) {
  int first = -1;
  std::uint32_t least = 0;
  for (int rank = 0; rank < board.peers(); ++rank) {
    std::uint32_t death = board.peer(rank).death.load(std::memory_order_acquire);
    if (death == 0 || (first >= 0 && death >= least)) continue;
    first = rank;
    least = death;
  }
  return first;
}

void acknowledge_deaths(WaitPlace& place) {
  place.known_alarms.store(place.board->header().alarms.load(std::memory_order_acquire),
                           std::memory_order_relaxed);
}

SlowWait::SlowWait(WaitPlace& place, WaitsFor kind, const char* what, Deadline deadline,
                   bool knows_whom_it_needs)
    : place_(place),
      kind_(kind),
      what_(what),
      knows_whom_it_needs_(knows_whom_it_needs),
      deadline_(within_limit(deadline, place.limit)) {
  if (!deadline_.is_never()) since_ = Clock::now();
}

Status SlowWait::pause(int lost) {
  // Pairs with the release of mark_lost() and request_exit().
  std::uint32_t alarms = place_.board->header().alarms.load(std::memory_order_acquire);
  if (alarms != place_.known_alarms.load(std::memory_order_relaxed)) {
    const bool tells_deaths =
        !knows_whom_it_needs_ || !place_.survives_deaths.load(std::memory_order_relaxed);
    if (Status status = tells_deaths ? alarm_status() : exit_status(); !status.is_ok())
      return status;
  }
  if (lost >= 0) return death_status(lost);
  if (!is_patient_ && deadline_.is_never() && ++yields_ % kYieldsPerLook != 0) {
    sched_yield();
    return Status::ok();
  }
  return pause_by_the_clock();
}

Status SlowWait::pause_by_the_clock() {
  const auto now = Clock::now();
  if (!since_) since_ = now;
  if (now >= *since_ + (reports_ + 1) * kReportEvery) {
    ++reports_;
    log_line(LogLevel::kWarn,
             fmt::format("{} is still waiting after {:.0f} s", what_, to_seconds(now - *since_)));
  }
  if (!deadline_.is_never() && now >= deadline_.when())
    return {Code::kTimeout, fmt::format("nothing came within {:.3f} s", to_seconds(now - *since_))};
  is_patient_ = now - *since_ > kAwake;
  if (is_patient_)
    sleep();
  else
    sched_yield();
  return Status::ok();
}

double SlowWait::seconds() const {
  return since_ ? to_seconds(Clock::now() - *since_) : 0.0;
}

// Arms the bell in one turn and sleeps in the next, so that the caller looks in between.
void SlowWait::sleep() {
  if (!is_armed_) {
    if (rings_in_vain_ > kRingsInVain) futex_wait(place_.self->bell, bell_, kShortNap);
    return arm();
  }
  futex_wait(place_.self->bell, bell_, kNap);
  const std::uint32_t bell = place_.self->bell.load(std::memory_order_acquire);
  if (bell == bell_) return;  // slept in peace and is armed still
  bell_ = bell;
  is_armed_ = false;
  ++rings_in_vain_;
}

// From here on writers ring. The fence makes sure that a writer who did not see the flag has
// stored before our next look at the condition.
void SlowWait::arm() {
  is_armed_ = true;
  bell_ = place_.self->bell.load(std::memory_order_acquire);
  if (kind_ == WaitsFor::kData) place_.self->armed_for_data.store(1, std::memory_order_relaxed);
  place_.self->armed.store(1, std::memory_order_relaxed);
  place_.board->header().anybody_armed.store(1, std::memory_order_release);
  fence_all_writers();
}

Status SlowWait::alarm_status() const {
  if (Status status = exit_status(); !status.is_ok()) return status;
  // The first death is the cause; others may have ended because of it.
  int first = first_dead_peer(*place_.board);
  if (first < 0) return Status::ok();  // a note that is still being written: look again
  return death_status(first);
}

Status SlowWait::exit_status() const {
  const BoardHeader& header = place_.board->header();
  if (header.exit_requested.load(std::memory_order_acquire) != 2) return Status::ok();
  return {Code::kUnavailable, fmt::format("PE {} asked the job to end with code {}",
                                          header.exit_rank.load(), header.exit_code.load())};
}

Status SlowWait::death_status(int rank) const {
  const BoardPeer& peer = place_.board->peer(rank);
  return {Code::kPeerLost,
          fmt::format("PE {} (process {}) died{} while this call waited {:.3f} s", rank,
                      peer.pid.load(), cause_of_death(peer.wait_status.load()), seconds())};
}

}  // namespace memspan
