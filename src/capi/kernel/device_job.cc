// SPDX-License-Identifier: Apache-2.0
#include "capi/kernel/device_job.h"

#include <fmt/format.h>

#include "capi/kernel/ring_server.h"
#include "capi/out_of_memory.h"
#include "capi/process_state.h"

namespace memspan::capi {
namespace {

// A kernel that waits sets Shared::waits more often than this, also on a busy machine.
constexpr auto kNoWait = std::chrono::milliseconds(500);

Status failed(const std::string& what, const char* why) {
  return {Code::kNotSupported, fmt::format("{}: {}", what, why)};
}

memspan_kernel_team entry_of(int number, const Team& team) {
  return {number, team.index(), team.size(), team.shape().start, team.shape().stride, {}};
}

}  // namespace

// For the job in process_state. One thread at a time.
class DeviceJob : NotCopyable {
 public:
  // By the functions of `unit`, which must outlive it. kNotSupported: the device cannot be used, or
  // cannot reach host memory at the host's addresses.
  static Result<std::unique_ptr<DeviceJob>> start(const memspan_kernel_unit& unit) {
    std::unique_ptr<DeviceJob> made(new DeviceJob(unit, process_state.world->waiting()));
    MEMSPAN_PASS(made->map_heaps());
    made->add_device_heap();
    MEMSPAN_PASS(made->make_rings());
    made->shared_->teams[MEMSPAN_KERNEL_TEAMS] = entry_of(0, *process_state.world_team);
    for (const TeamTable::Handle number : process_state.teams->handles())
      made->add_team(static_cast<int>(number), *process_state.teams->find(number));
    MEMSPAN_PASS(made->serve());
    // Threads of a device store to this process's memory, whatever the program's own do.
    made->waiting_.has_threads = true;
    return made;
  }
  ~DeviceJob() {
    stop();
    if (tickets_ != nullptr) unit_.release(tickets_);
    for (void* const memory : mapped_) unit_.unmap(memory);
  }

  const memspan_kernel_unit& unit() const { return unit_; }
  const memspan_kernel_state& state() const { return state_; }
  // Returns when all that kernels posted before is done.
  void finish() const { requests_->finish(); }
  // Stops kernels that still wait, and answers no more requests.
  void stop() {
    meetings_.reset();  // first, since barriers wait for requests
    requests_.reset();
    set_stop(MEMSPAN_KERNEL_NOT_SERVED);
  }
  // Adds the symmetric heap in device memory once it exists; the device reaches it directly.
  void add_device_heap() {
    std::fill(std::begin(state_.device_distances), std::end(state_.device_distances),
              MEMSPAN_KERNEL_FAR);
    const DeviceHeap* const heap = process_state.world->device_heap();
    if (heap == nullptr) return;
    state_.device_heap_base = reinterpret_cast<std::uintptr_t>(heap->base());
    state_.device_heap_bytes = heap->bytes();
    for (int index = 0; index < MEMSPAN_KERNEL_NEAR_PES; ++index) {
      const int pe = state_.first_near + index;
      if (pe >= state_.n_pes || state_.distances[index] == MEMSPAN_KERNEL_FAR) continue;
      state_.device_distances[index] = heap->address_at(heap->base(), pe) - heap->base();
    }
  }
  void add_team(int number, const Team& team) {
    memspan_kernel_team& entry =
        shared_->teams[static_cast<std::size_t>(number) % MEMSPAN_KERNEL_TEAMS];
    if (entry.n_pes == 0 && team.shape().list == nullptr) entry = entry_of(number, team);
  }
  void remove_team(int number) {
    memspan_kernel_team& entry =
        shared_->teams[static_cast<std::size_t>(number) % MEMSPAN_KERNEL_TEAMS];
    if (entry.number == number) entry = {};
  }

 private:
  static constexpr std::size_t kRequests = 64;
  static constexpr std::size_t kMeetings = 4;
  // Whole pages, so that nothing else is mapped with them.
  struct alignas(4096) Shared {
    std::uint32_t stop = 0;
    std::uint32_t waits = 0;
    std::array<memspan_kernel_team, MEMSPAN_KERNEL_TEAMS + 1> teams{};
    alignas(128) std::array<memspan_kernel_request, kRequests> requests{};
    alignas(128) std::array<memspan_kernel_request, kMeetings> meetings{};
  };

  DeviceJob(const memspan_kernel_unit& unit, WaitContext& waiting)
      : unit_(unit), waiting_(waiting) {}
  Status map(void* memory, std::size_t bytes, const std::string& what) {
    if (const char* const why = unit_.map(memory, bytes); why != nullptr)
      return failed(fmt::format("mapping {}, {} bytes at {}", what, bytes, memory), why);
    mapped_.push_back(memory);
    return Status::ok();
  }
  Status map_heaps() {
    const World& world = *process_state.world;
    const SymmetricRegion& heap = process_state.routes.heap;
    const auto is_near = [&](int pe) { return world.route(pe).is_direct(); };
    int first = 0;
    while (!is_near(first)) ++first;  // at the latest this process
    state_.version = MEMSPAN_KERNEL_STATE_VERSION;
    state_.my_pe = world.rank();
    state_.n_pes = world.size();
    state_.first_near = first;
    state_.heap_base = heap.base;
    state_.heap_bytes = heap.bytes;
    std::fill(std::begin(state_.distances), std::end(state_.distances), MEMSPAN_KERNEL_FAR);
    for (int pe = 0; pe < world.size(); ++pe) {
      if (!is_near(pe) || pe - first >= MEMSPAN_KERNEL_NEAR_PES) {
        state_.has_far_pes = 1;
        continue;
      }
      const std::ptrdiff_t distance = world.route(pe).delta;
      auto* const base = reinterpret_cast<void*>(  // NOLINT(performance-no-int-to-ptr)
          heap.base + static_cast<std::uintptr_t>(distance));
      MEMSPAN_PASS(map(base, heap.bytes, fmt::format("PE {}'s symmetric heap", pe)));
      state_.distances[pe - first] = distance;
    }
    state_.has_native_atomics = unit_.has_native_atomics() != 0 ? 1 : 0;
    return Status::ok();
  }
  Status make_rings() {
    MEMSPAN_PASS(map(shared_.get(), sizeof(Shared), "what kernels share with the host"));
    if (const char* const why = unit_.allocate(&tickets_, 2 * sizeof(std::uint64_t));
        why != nullptr)
      return failed("allocating the rings' counters", why);
    auto* const tickets = static_cast<std::uint64_t*>(tickets_);
    state_.stop = &shared_->stop;
    state_.waits = &shared_->waits;
    state_.wait_limit_ns = static_cast<std::uint64_t>(
        std::chrono::nanoseconds(waiting_.limit.load(std::memory_order_relaxed)).count());
    state_.teams = shared_->teams.data();
    state_.requests = {tickets, shared_->requests.data(), kRequests};
    state_.meetings = {tickets + 1, shared_->meetings.data(), kMeetings};
    return Status::ok();
  }
  Status serve() {
    MEMSPAN_TRY_ASSIGN(requests_,
                       RingServer::start(shared_->requests.data(), kRequests, answer_request,
                                         [this] {
                                           watch_peers();
                                           watch_waits();
                                         }),
                       "requests");
    MEMSPAN_TRY_ASSIGN(
        meetings_, RingServer::start(shared_->meetings.data(), kMeetings, answer_request, [] {}),
        "barriers");
    return Status::ok();
  }
  // A wait on the device does not know which PE it needs. A death that the program has not
  // acknowledged ends it, as it ends such waits on the host.
  void watch_peers() {
    const bool is_known = waiting_.segment->header().alarms.load(std::memory_order_acquire) ==
                          waiting_.known_alarms.load(std::memory_order_relaxed);
    set_stop(is_known ? MEMSPAN_KERNEL_GO_ON : MEMSPAN_KERNEL_PEER_DIED);
  }
  // A wait in a kernel that began before a peer left is only reported, like a host wait with other
  // threads: this process may still store the awaited value.
  void watch_waits() {
    if (!waiting_.has_ends()) return;
    const auto now = Clock::now();
    if (std::atomic_ref<std::uint32_t>(shared_->waits).exchange(0, std::memory_order_relaxed) !=
        0) {
      if (!wait_seen_) wait_seen_ = now;
      wait_last_seen_ = now;
    } else if (now - wait_last_seen_ > kNoWait) {
      wait_seen_.reset();
    }
    if (wait_seen_) tell_of_end(waiting_, "a kernel", now - *wait_seen_);
  }
  void set_stop(std::uint32_t why) {
    std::atomic_ref<std::uint32_t>(shared_->stop).store(why, std::memory_order_relaxed);
  }

  const memspan_kernel_unit& unit_;
  WaitContext& waiting_;  // of the job, which may not be the current one
  memspan_kernel_state state_{};
  std::unique_ptr<Shared> shared_ = std::make_unique<Shared>();
  std::vector<void*> mapped_;
  void* tickets_ = nullptr;
  std::optional<Clock::time_point> wait_seen_;  // since then kernels have waited for words
  Clock::time_point wait_last_seen_;
  std::unique_ptr<RingServer> requests_;
  std::unique_ptr<RingServer> meetings_;
};

// ---- the translation units with kernels for a device, and which state they have

namespace {

constinit Mutex units_mutex;
memspan_kernel_unit* first_unit MEMSPAN_GUARDED_BY(units_mutex) = nullptr;

void warn(const char* what, std::string_view why) {
  log_line(LogLevel::kWarn, fmt::format("kernels on devices: {}: {}", what, why));
}

void show_to(const memspan_kernel_unit& unit) {
  static constexpr memspan_kernel_state kNone{};
  const DeviceJob* const job = process_state.device_job;
  if (const char* const why = unit.set_state(job == nullptr ? &kNone : &job->state());
      why != nullptr)
    warn("setting their state", why);
}
void show_to_all() MEMSPAN_REQUIRES(units_mutex) {
  for (const memspan_kernel_unit* unit = first_unit; unit != nullptr; unit = unit->next)
    show_to(*unit);
}

void begin() MEMSPAN_REQUIRES(units_mutex) {
  if (first_unit == nullptr || !is_started()) return;
  auto made = DeviceJob::start(*first_unit);
  if (!made.is_ok()) return warn("they cannot run in this job", made.status().message());
  process_state.device_job = std::move(made).value().release();
  show_to_all();
}

void end() MEMSPAN_REQUIRES(units_mutex) {
  if (process_state.device_job == nullptr) return;
  process_state.device_job->stop();  // kernels that wait would hold up the next line
  const std::unique_ptr<DeviceJob> ended(std::exchange(process_state.device_job, nullptr));
  show_to_all();
}

// Removes any unit, also one whose functions a job uses.
void remove(memspan_kernel_unit* unit) MEMSPAN_REQUIRES(units_mutex) {
  memspan_kernel_unit** link = &first_unit;
  while (*link != nullptr && *link != unit) link = &(*link)->next;
  if (*link == nullptr) return;
  *link = unit->next;
  if (process_state.device_job == nullptr || &process_state.device_job->unit() != unit) return;
  end();
  begin();
}

}  // namespace

void begin_device_job() {
  MutexLock lock(units_mutex);
  begin();
}
void finish_device_requests() {
  if (process_state.device_job != nullptr) process_state.device_job->finish();
}
void end_device_job() {
  MutexLock lock(units_mutex);
  end();
}
void show_device_job() {
  MutexLock lock(units_mutex);
  show_to_all();
}
void show_device_heap() {
  MutexLock lock(units_mutex);
  if (process_state.device_job == nullptr) return;
  process_state.device_job->add_device_heap();
  show_to_all();
}

void show_team(int number, const Team& team) {
  if (process_state.device_job != nullptr) process_state.device_job->add_team(number, team);
}
void hide_team(int number) {
  if (process_state.device_job != nullptr) process_state.device_job->remove_team(number);
}

}  // namespace memspan::capi

using namespace memspan::capi;

MEMSPAN_EXPORT void memspan_kernel_register_unit(memspan_kernel_unit* unit) try {
  if (unit->version != MEMSPAN_KERNEL_STATE_VERSION)
    return warn("a translation unit cannot be used",
                fmt::format("it was compiled with version {} of <memspan/kernel_state.h>, and the "
                            "library has {}",
                            unit->version, MEMSPAN_KERNEL_STATE_VERSION));
  memspan::MutexLock lock(units_mutex);
  // At the end, so that the first unit stays the one that maps.
  memspan_kernel_unit** link = &first_unit;
  while (*link != nullptr) link = &(*link)->next;
  unit->next = nullptr;
  *link = unit;
  if (process_state.device_job != nullptr)
    show_to(*unit);
  else
    begin();
}
MEMSPAN_CATCH()

MEMSPAN_EXPORT void memspan_kernel_unregister_unit(memspan_kernel_unit* unit) try {
  memspan::MutexLock lock(units_mutex);
  remove(unit);
}
MEMSPAN_CATCH()
