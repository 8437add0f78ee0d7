// SPDX-License-Identifier: Apache-2.0
// The job this process is in, and what the API bindings keep about it.
//
// The hot path reads `process_state.routes`, one flat structure; before init and after finalize
// it is empty, so that every address check fails and the slow path (failures.h) says why.
#pragma once

#include <functional>

#include "capi/handle_table.h"
#include "core/clock.h"
#include "core/status.h"
#include "pgas/local_teams.h"
#include "pgas/team.h"
#include "world/membership.h"
#include "world/world.h"

namespace memspan::capi {

using TeamTable = HandleTable<Team, HandleKind::kNumber, 65536>;

// A context of OpenSHMEM: the team that its PE numbers count in, and its outstanding operations at
// PEs that are not mapped.
struct Context {
  Team* team;
  TeamTable::Handle team_number;  // as the OpenSHMEM API spells it
  bool is_private;                // the user destroys it, not the team
  std::unique_ptr<OperationContext> operations = std::make_unique<OperationContext>();
};
using ContextTable = HandleTable<Context, HandleKind::kNumber, 65536>;

// The handle of a context as a number; 1 is that of the default context.
using ContextNumber = std::uint64_t;
inline constexpr ContextNumber kDefaultContext = 1;

class DeviceJob;

struct ProcessState {
  RouteTable routes;       // a copy of world->program_routes(); empty when not in a job
  bool has_links = false;  // some route needs fence and quiet to ask its link
  int rank = -1;           // world->rank(), without a way to go
  // The rank while the job has more processes than cores on this host; else -1, never a PE.
  int crowded_rank = -1;
  World* world = nullptr;
  Team* world_team = nullptr;
  Team* shared_team = nullptr;  // the peers of this host
  LocalTeams* local_teams = nullptr;
  // Made at the first start and kept, so that handles of a job that is over stay stale.
  TeamTable* teams = nullptr;  // those that were split off
  ContextTable* contexts = nullptr;
  DeviceJob* device_job = nullptr;  // null where no kernels run on devices
  // For the next start: made when a job that another vendor's launcher described is left.
  const Rendezvous* again = nullptr;
  std::uint64_t instance = 0;         // the number of this job among those of the process
  int users = 0;                      // of the job; only start() and stop() touch it
  bool compares_collectives = false;  // whether the members of one gave the same arguments
  bool is_forked = false;             // a child that fork() made of a member: it is in no job
  // At own words until one is noted, in a job with more processes than cores (polling.h). Written
  // often.
  alignas(kFalseSharingRange) std::int32_t looks_left = 0;
};

// Hidden, because otherwise every access would use the global offset table.
extern ProcessState process_state [[gnu::visibility("hidden")]];

// Returns the team's number, 0 when there are too many. Also shows it to kernels on devices.
TeamTable::Handle add_team(std::unique_ptr<Team> team);
void remove_team(TeamTable::Handle number);
// The team of a number of the CANN SHMEM API, which kernels use. Null when it names no team, or
// before the start.
Team* find_team(int team);
// Ends the process then.
Team& need_team(const char* call, int team);

// Completes what the process has outstanding on links, kernels on devices included. Not for the
// thread that does what those ask for.
Status quiet_links(const RouteTable& routes);

// The two collectives that every API binding has, of a team's members; a barrier also completes
// this PE's puts. Failures are a death, or under SHMEM_DEBUG members in different calls.
Status barrier(const char* call, Team& team);
Status sync(const char* call, Team& team);

// The routes with what the context has outstanding. For calls that are not the fast case.
RouteTable routes_of(ContextNumber context);

inline bool is_started() {
  return __atomic_load_n(&process_state.world, __ATOMIC_ACQUIRE) != nullptr;
}

// How a process gets into a job.
struct Start {
  const char* what;  // the call, for messages
  std::function<Result<Membership>()> join;
  std::function<Result<HeapSize>()> heap_size;
  // The longest that a call may wait for peers; zero: as long as they live.
  Duration call_limit = Duration::zero();
};
enum class Sharing {
  kCounted,    // in a job already: one more user of it
  kExclusive,  // in a job already: kUnavailable
};

// Joins and makes the teams of all peers and of this host. Collective. An exit handler also leaves,
// only in the process that started. After exit(status) with another status than 0 it waits for no
// peer, so that the peers learn of the failure. Thread-safe.
Status start(const Start& how, Sharing sharing);
// Completes, and waits for all peers; the last user's call also leaves. kUnavailable when there is
// no job. When that fails the process is still in the job. The caller's threads are in no other
// call. Thread-safe.
Status stop(const char* what);
// Leaves without a barrier: for a job whose end cannot be agreed on any more.
void abandon();

// Jobs of this process by number. The current one is in process_state: start() makes it and all
// calls act on it. Number 0 is current first; only it comes from a launcher and has symmetric
// program variables. The functions below are thread-safe among each other.
inline constexpr std::uint64_t kMostInstance = 255;
// Whether the process is in the job of this number.
bool has_instance(std::uint64_t number);
// Makes a number current, whether there is such a job or not. No thread is in another call.
void choose_instance(std::uint64_t number);

// SHMEM_SYMMETRIC_SIZE (or the deprecated SMA_SYMMETRIC_SIZE), 1 GiB by default.
Result<HeapSize> heap_size_from_environment();

}  // namespace memspan::capi
