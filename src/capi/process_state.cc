// SPDX-License-Identifier: Apache-2.0
#include "capi/process_state.h"

#include <fmt/format.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "capi/failures.h"
#include "capi/kernel/device_job.h"
#include "capi/second_copy.h"
#include "core/cpu.h"
#include "core/environment.h"
#include "core/log.h"
#include "core/mutex.h"
#include "memory/budget.h"
#include "observe/trace.h"
#include "pgas/collective/collective.h"
#include "pgas/rma.h"
#include "world/host_memory.h"

namespace memspan::capi {

constinit ProcessState process_state{};

namespace {

MEMSPAN_REMEDY(kInAJob, "already-in-a-job", "The process is in a job and would start another one.",
               "Start once. For several jobs at the same time, use instance_id (docs/cann.md).");

constexpr std::size_t kDefaultHeapBytes = std::size_t{1} << 30;
constexpr auto kGoodbyeLimit = std::chrono::seconds(5);

// Starting and stopping, as opposed to being in a job.
struct Lifecycle {
  Mutex mutex;
  // The jobs that are not current, by number; null: there never was one.
  std::array<ProcessState*, kMostInstance + 1> others MEMSPAN_GUARDED_BY(mutex) = {};
  pid_t process MEMSPAN_GUARDED_BY(mutex) = 0;  // a child of fork is not in the job
  bool has_exit_handler MEMSPAN_GUARDED_BY(mutex) = false;
};
constinit Lifecycle lifecycle;

// ---- what explains a start that is slow or unexpected: processes, hosts, memory, routes, the time
// of each step. Logged at the level DEBUG; INFO has only the routes. Without DEBUG a start reads a
// clock once.

std::string describe_memory(const World& world) {
  const RouteTable& routes = world.routes();
  const auto budget = measure_memory_budget();
  const bool is_at_allocation = world.commit_mode() == CommitMode::kAtAllocation;
  return fmt::format(
      "memory: a symmetric heap of {} at {:#x}, taken at {}; {} of global and static variables are "
      "symmetric; {}",
      format_size(routes.heap.bytes), routes.heap.base,
      is_at_allocation ? "allocation" : "the first use of each page",
      format_size(routes.data.bytes),
      budget.is_ok()
          ? fmt::format("{} may be taken ({})", format_size(budget->available), budget->source)
          : budget.status().message());
}

class StartStory {
 public:
  explicit StartStory(const char* call) : call_(call) {}
  // Ends the step that began at the previous call or at construction.
  void step(const char* what) {
    if (!is_told_) return;
    const auto now = Clock::now();
    steps_ += fmt::format("{}{} {:.2f} ms", steps_.empty() ? "" : ", ", what,
                          1e3 * to_seconds(now - last_));
    last_ = now;
  }
  void tell(const World& world, std::string_view how_joined) const {
    if (log_level() <= LogLevel::kInfo)
      log_line(LogLevel::kInfo, fmt::format("{}: {}", call_, world.describe_routes()));
    if (!is_told_) return;
    auto say = [&](const std::string& line) {
      log_line(LogLevel::kDebug, fmt::format("{}: {}", call_, line));
    };
    say(fmt::format("process: memspan {}, process {} is PE {} of {}, {}", MEMSPAN_VERSION, getpid(),
                    world.rank(), world.size(), how_joined));
    const bool is_crowded = world.is_oversubscribed();
    say(fmt::format("where: host {}, {} core{} for this process; waits {}", host_name(),
                    usable_cores(), usable_cores() == 1 ? "" : "s",
                    is_crowded ? "yield at once, since there are more PEs than cores"
                               : "spin before they yield"));
    say(describe_memory(world));
    int direct = 0;
    for (int peer = 0; peer < world.size(); ++peer) direct += world.route(peer).is_direct() ? 1 : 0;
    say(fmt::format("route: loads and stores reach {} of {} PEs, links the others", direct,
                    world.size()));
    say(fmt::format("time: {}; {:.2f} ms in all", steps_, 1e3 * to_seconds(last_ - begin_)));
  }

 private:
  const char* call_;
  const bool is_told_ = log_level() <= LogLevel::kDebug;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = begin_;
  std::string steps_;
};

// ----

void forget_job() {
  end_device_job();  // whose threads make calls
  World* world = process_state.world;
  if (world->membership().again && process_state.again == nullptr)
    process_state.again = new Rendezvous(*world->membership().again);
  __atomic_store_n(&process_state.world, nullptr, __ATOMIC_RELEASE);
  process_state.routes = RouteTable{};
  process_state.has_links = false;
  process_state.crowded_rank = -1;
  process_state.contexts->clear();
  process_state.teams->clear();
  delete std::exchange(process_state.local_teams, nullptr);
  delete std::exchange(process_state.shared_team, nullptr);
  delete std::exchange(process_state.world_team, nullptr);
  delete world;
  set_log_identity("");
}

Status leave(const char* what, EndKind how) MEMSPAN_REQUIRES(lifecycle.mutex) {
  const Status completed = capi::quiet_links(process_state.routes);
  // After a death the peers do not wait for all, and PEs that have left no longer answer.
  // World::end() then reports the death.
  if (completed.code() != Code::kPeerLost) MEMSPAN_PASS(completed);
  // The root of the last broadcast learns here if another member made a different call.
  MEMSPAN_PASS(process_state.world_team->settle(what));
  MEMSPAN_PASS(process_state.world->end(what, how));
  process_state.world->leave();
  // All peers have met, so a store that no longer answers affects none of them.
  Status closed = leave_rendezvous(process_state.world->membership(), kGoodbyeLimit);
  if (!closed.is_ok()) log_line(LogLevel::kWarn, fmt::format("{}: {}", what, closed.message()));
  process_state.users = 0;
  forget_job();
  return Status::ok();
}

void exchange_current(std::uint64_t number) MEMSPAN_REQUIRES(lifecycle.mutex) {
  if (number == process_state.instance) return;
  finish_device_requests();  // they are done in the current job
  ProcessState*& last = lifecycle.others[process_state.instance];
  ProcessState*& next = lifecycle.others[number];
  if (last == nullptr) last = new ProcessState;
  *last = std::exchange(process_state, next == nullptr ? ProcessState{} : *next);
  process_state.instance = number;
  show_device_job();
  set_log_identity(process_state.users == 0 ? "" : fmt::format("PE {}", process_state.rank));
}

void leave_at_exit(int status) {
  MutexLock lock(lifecycle.mutex);
  if (lifecycle.process != getpid()) return;
  if (status != 0) return write_trace();  // what it was doing; the job ends
  for (std::uint64_t number = 0; number <= kMostInstance; ++number) {
    if (number != process_state.instance && lifecycle.others[number] == nullptr) continue;
    exchange_current(number);
    if (process_state.users > 0) require("leaving at exit", leave("exit", EndKind::kExit));
  }
}

// A child of fork() would act in its parent's name, so it is in no job. It frees nothing that it
// inherited, because the threads to join do not exist in it. No other thread runs.
void forget_in_child() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
  static constinit ProcessState of_parent{};
  for (const ProcessState* other : lifecycle.others)
    if (other != nullptr && other->world != nullptr) other->world->forget_in_child();
  const bool has_exit_handler = lifecycle.has_exit_handler;
  new (&lifecycle) Lifecycle;  // a thread of the parent may have held the mutex
  lifecycle.has_exit_handler = has_exit_handler;
  if (!is_started()) return;
  process_state.world->forget_in_child();
  of_parent = std::exchange(process_state, ProcessState{});
  process_state.is_forked = true;
}

// Before main and before the program's own constructors. The variables belong to the first copy.
[[gnu::constructor]] void share_variables() {
  if (!report_second_copy()) share_static_segment_at_start();
}

void add_process_handlers() MEMSPAN_REQUIRES(lifecycle.mutex) {
  if (std::exchange(lifecycle.has_exit_handler, true)) return;
  pthread_atfork(nullptr, nullptr, forget_in_child);
#if defined(__GLIBC__)
  on_exit([](int status, void*) { leave_at_exit(status); }, nullptr);
#else
  std::atexit([] { leave_at_exit(0); });
#endif
}

Status join(const Start& how) {
  MEMSPAN_PASS(check_log_environment());
  StartStory story(how.what);
  MEMSPAN_TRY_ASSIGN(const HeapSize heap_size, how.heap_size(),
                     "reading the size of the symmetric heap");
  MEMSPAN_TRY_ASSIGN(Membership membership, how.join(), "joining the job");
  set_log_identity(fmt::format("PE {}", membership.rank));
  const std::string how_joined = membership.how;
  story.step("joining");
  MEMSPAN_TRY_ASSIGN(
      auto world,
      World::create(std::move(membership), heap_size,
                    process_state.instance == 0 ? StaticVariables::kShared : StaticVariables::kOwn),
      "connecting to the peers");
  story.step("mapping");
  world->waiting().limit = how.call_limit;
  apply_error_handler(*world);
  auto world_team = Team::world(*world);
  auto local_teams = std::make_unique<LocalTeams>(*world);
  MEMSPAN_TRY_ASSIGN(auto shared_team, world_team->split_mapped(how.what),
                     "making the team of shared memory");
  // Making that team was a barrier: all peers have shared theirs.
  story.step("barrier");
  MEMSPAN_TRY(world->connect_static_segments(), "connecting to the peers");
  story.step("connecting the variables");
  story.tell(*world, how_joined);
  if (process_state.teams == nullptr) process_state.teams = new TeamTable;
  if (process_state.contexts == nullptr) process_state.contexts = new ContextTable;
  process_state.is_forked = false;
  process_state.world_team = world_team.release();
  process_state.shared_team = shared_team.release();
  process_state.local_teams = local_teams.release();
  process_state.has_links = pgas::has_links(world->routes());
  process_state.rank = world->rank();
  process_state.crowded_rank = world->is_oversubscribed() ? world->rank() : -1;
  process_state.routes = world->program_routes();
  // Last, since it is what is_started() looks at.
  __atomic_store_n(&process_state.world, world.release(), __ATOMIC_RELEASE);
  return Status::ok();
}

}  // namespace

Status quiet_links(const RouteTable& routes) {
  finish_device_requests();
  return pgas::quiet_links(routes);
}

RouteTable routes_of(ContextNumber context) {
  RouteTable routes = process_state.routes;
  if (context == kDefaultContext || process_state.contexts == nullptr) return routes;
  if (const Context* found = process_state.contexts->find(context))
    routes.operations = found->operations.get();
  return routes;
}

Status start(const Start& how, Sharing sharing) {
  MutexLock lock(lifecycle.mutex);
  if (process_state.users > 0) {
    if (sharing == Sharing::kExclusive)
      return {Code::kUnavailable, std::string("this process is in a job already") + kInAJob};
    ++process_state.users;
    return Status::ok();
  }
  if (Status status = join(how); !status.is_ok()) return status;
  process_state.users = 1;
  lifecycle.process = getpid();
  add_process_handlers();
  begin_device_job();
  return Status::ok();
}

Status stop(const char* what) {
  MutexLock lock(lifecycle.mutex);
  if (process_state.users == 0)
    return {Code::kUnavailable, std::string("this process is in no job") + kNotInAJob};
  if (process_state.users == 1) return leave(what, EndKind::kFinalize);
  --process_state.users;
  return pgas::barrier(*process_state.world_team, what);
}

void abandon() {
  MutexLock lock(lifecycle.mutex);
  if (process_state.users == 0) return;
  process_state.world->leave();
  process_state.users = 0;
  forget_job();
}

bool has_instance(std::uint64_t number) {
  MutexLock lock(lifecycle.mutex);
  if (number == process_state.instance) return process_state.users > 0;
  return number <= kMostInstance && lifecycle.others[number] != nullptr &&
         lifecycle.others[number]->users > 0;
}

void choose_instance(std::uint64_t number) {
  MutexLock lock(lifecycle.mutex);
  exchange_current(number);
}

Result<HeapSize> heap_size_from_environment() {
  for (const char* name : {"SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE"})
    if (auto text = environment(name)) {
      const auto bytes = parse_size(name, *text);
      return bytes.is_ok() ? Result<HeapSize>(HeapSize{*bytes}) : bytes.status();
    }
  return HeapSize{.bytes = kDefaultHeapBytes, .is_default = true};
}

}  // namespace memspan::capi
