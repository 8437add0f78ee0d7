// SPDX-License-Identifier: Apache-2.0
// Waiting that is quick when the answer is near and cheap when it is not: spin for about a
// microsecond (not at all when there are more processes than cores), then let others run, then
// sleep on the process's doorbell.
//
// A wait ends early with kPeerLost when a peer has died, with kUnavailable when a peer asked the
// job to end, with kTimeout at its deadline. A process that goes on after a death has acknowledged
// it: that death then ends only the meetings of which the dead was a member.
#pragma once

#include <cstdint>

#include "core/clock.h"
#include "core/cpu.h"
#include "core/status.h"
#include "world/board.h"
#include "world/team_shape.h"

namespace memspan {

// What the waits of one process share. Thread-safe.
struct WaitPlace {
  const Board* board = nullptr;
  BoardPeer* self = nullptr;
  int rank = 0;
  int spins = 0;  // looks before the first sched_yield
  // Deaths and requests up to this count of BoardHeader::alarms are known and end no wait.
  std::atomic<std::uint32_t> known_alarms{0};
  // No wait lasts longer, whatever its own deadline; zero: it may. Set before the first wait.
  Duration limit = Duration::zero();
};

// From now on the deaths that have been noted end only what needs the dead.
void acknowledge_deaths(WaitPlace& place);
// The rank of the first process of the job that died; -1 when all live.
int first_dead_peer(const Board& board);

// Whose store ends the wait, and so who has to ring. A sleeper in a meeting costs those who put
// to it nothing.
enum class WaitsFor {
  kMeeting,  // ours: teams' sequence words
  kData,     // the user's words
};

// The patient part of one wait; lives on the waiter's stack.
class SlowWait {
 public:
  // `what` names the call, for messages and the line that is logged every 60 s. The death of a
  // member of `needed`, if given, ends it even when it is known.
  SlowWait(WaitPlace& place, WaitsFor kind, const char* what, Deadline deadline,
           const TeamShape* needed);
  SlowWait(const SlowWait&) = delete;
  SlowWait& operator=(const SlowWait&) = delete;

  // One more pause: a yield or, later, a sleep. Not ok when the wait has to end. The condition
  // must be looked at between any two calls.
  Status pause();

 private:
  Status alarm_status();
  Status needed_status() const;
  Status death_status(int rank) const;
  void sleep();
  void arm();

  WaitPlace& place_;
  const WaitsFor kind_;
  const char* what_;
  const TeamShape* const needed_;
  const Deadline deadline_;
  Clock::time_point since_;
  Clock::time_point next_report_;
  std::uint32_t bell_ = 0;
  bool is_armed_ = false;
  int rings_in_vain_ = 0;
};

// Returns once ready() is true; ready() must load with acquire order.
template <typename Ready>
Status wait_for(WaitPlace& place, WaitsFor kind, const char* what, Deadline deadline, Ready ready,
                const TeamShape* needed = nullptr) {
  for (int spin = place.spins; spin > 0; --spin) {
    if (ready()) return Status::ok();
    cpu_pause();
  }
  if (ready()) return Status::ok();
  SlowWait slow(place, kind, what, deadline, needed);
  while (!ready())
    if (Status status = slow.pause(); !status.is_ok()) return ready() ? Status::ok() : status;
  return Status::ok();
}

}  // namespace memspan
