// SPDX-License-Identifier: Apache-2.0
#include "observe/counters.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "core/environment.h"
#include "core/lifetime.h"
#include "core/log.h"
#include "core/pages.h"
#include "observe/call_table.h"
#include "observe/metrics.h"
#include "observe/trace.h"

namespace memspan::inline observe {

constinit Recording recording{};
constinit thread_local ThreadCounters* own_thread_counters = nullptr;

namespace {

// Set once; the mapping at that address changes.
constinit std::atomic<CountersRegion*> the_region{nullptr};

struct Published {
  Mutex mutex;
  // Held while threads take or return slots, or all slots move. Locked after `mutex`.
  Mutex slots;
  std::optional<Pages> pages MEMSPAN_GUARDED_BY(mutex);
  std::unique_ptr<TextServer> metrics MEMSPAN_GUARDED_BY(mutex);
  std::unique_ptr<CallTableFile> table MEMSPAN_GUARDED_BY(mutex);
  int listed MEMSPAN_GUARDED_BY(mutex) = 0;
};
Published& published = *new Published;

// For threads without a slot: they overwrite each other's counts, which are never read.
constinit ThreadCounters spilled{};

std::size_t mapped_bytes() {
  return align_up(sizeof(CountersRegion), page_size());
}

Status map_at(void* place, int fixed, int descriptor) {
  const int flags = fixed | (descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
  void* const mapped = mmap(place, mapped_bytes(), PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (mapped == MAP_FAILED) return Status::from_errno("mmap");
  if (fixed == 0) the_region.store(static_cast<CountersRegion*>(mapped), std::memory_order_release);
  return Status::ok();
}

// Keeps the counts. No thread is in a call that counts, but threads may begin and end.
Status put_at(CountersRegion& region, int descriptor) {
  MutexLock lock(published.slots);
  const auto kept = std::make_unique<std::byte[]>(mapped_bytes());
  std::memcpy(kept.get(), static_cast<void*>(&region), mapped_bytes());
  MEMSPAN_PASS(map_at(&region, MAP_FIXED, descriptor));
  std::memcpy(static_cast<void*>(&region), kept.get(), mapped_bytes());
  return Status::ok();
}

// So that the child finds a consistent state.
void lock_for_fork() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
  published.mutex.lock();
  published.slots.lock();
}

void unlock_in_parent() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
  published.slots.unlock();
  published.mutex.unlock();
}

// The child counts from zero and writes nothing into its parent's region.
void forget_in_child() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
  published.pages.reset();
  // Not destroyed: their threads do not exist in the child and may have left them half changed.
  [[maybe_unused]] static TextServer* metrics_of_parent = nullptr;
  [[maybe_unused]] static CallTableFile* table_of_parent = nullptr;
  if (published.metrics != nullptr)
    (metrics_of_parent = published.metrics.release())->forget_in_child();
  table_of_parent = published.table.release();
  forget_call_table_in_child();
  new (&published) Published;
  own_thread_counters = nullptr;
  forget_trace_in_child();
  static_cast<void>(map_at(the_region.load(), MAP_FIXED, -1));
}

Status show(CountersRegion& region) MEMSPAN_REQUIRES(published.mutex) {
  MEMSPAN_PASS_ASSIGN(Pages pages, Pages::create(mapped_bytes(), kCountersLabel));
  MEMSPAN_PASS(put_at(region, pages.descriptor()));
  region.header.version = kCountersVersion;
  region.header.process = getpid();
  region.header.magic = kCountersMagic;
  published.pages = std::move(pages);
  return Status::ok();
}

Status read_settings(CountersRegion& region, const TraceOwner& owner, bool has_table) {
  MEMSPAN_PASS_ASSIGN(const auto counts, environment_integer("MEMSPAN_COUNTERS", 0, 1));
  MEMSPAN_PASS(answer_stack_requests(owner.kind, owner.rank));
  const bool traces = start_trace(owner);
  const bool is_on = traces || has_table || counts.value_or(0) == 1;
  recording.traces.store(traces, std::memory_order_relaxed);
  recording.tables.store(has_table, std::memory_order_relaxed);
  recording.only_counts.store(is_on && !traces && !has_table, std::memory_order_relaxed);
  recording.is_on.store(is_on, std::memory_order_relaxed);
  region.header.counts_calls.store(is_on ? 1 : 0, std::memory_order_relaxed);
  return Status::ok();
}

int free_slot(const CountersRegion& region) {
  for (std::size_t i = 0; i < kMostListed; ++i)
    if (region.members[i].kind.load(std::memory_order_relaxed) == MemberKind::kNone)
      return static_cast<int>(i);
  return -1;
}

// When the thread ends.
void give_slot_back() {
  // The main thread runs on after this: it leaves its job in an exit handler, perhaps waiting.
  if (syscall(SYS_gettid) == getpid()) return;
  MutexLock lock(published.slots);
  // A child of fork() may end without a slot of its own.
  if (own_thread_counters != nullptr && own_thread_counters != &spilled)
    own_thread_counters->thread.store(0, std::memory_order_relaxed);
  own_thread_counters = &spilled;  // for what its other destructors call
}

// Null without an address.
Result<std::unique_ptr<TextServer>> serve_own_metrics(ServeText serve) {
  const auto place = environment("MEMSPAN_METRICS");
  if (serve == nullptr || !place || place->empty()) return std::unique_ptr<TextServer>();
  auto server = serve("MEMSPAN_METRICS", *place, [] {
    return metrics_of({read_counters(*own_counters(), nanoseconds_of(Clock::now()))});
  });
  if (server.is_ok()) {
    log_line(LogLevel::kInfo, fmt::format("metrics are served at port {}", (*server)->port()));
    return server;
  }
  if (server.code() == Code::kInvalidArgument) return server;
  log_line(LogLevel::kWarn,
           fmt::format("no metrics of this process: {}; memspan-top --metrics serves those of all "
                       "processes of a host",
                       server.status().message()));
  return std::unique_ptr<TextServer>();
}

// The table is written once more when a process ends without leaving its jobs.
void end_at_exit() {
  MutexLock lock(published.mutex);
  published.metrics.reset();
  published.table.reset();
}

}  // namespace

std::string_view name_of(CallKind kind) {
  constexpr std::array<std::string_view, kCallKinds> kNames{
      "put", "get", "atomic", "signal", "collective", "copy", "transfer"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(MemberKind kind) {
  constexpr std::array<std::string_view, 4> kNames{"none", "job", "pool", "endpoint"};
  const auto number = static_cast<std::size_t>(kind);
  return number < kNames.size() ? kNames[number] : "unknown";
}

void ThreadCounters::begin_wait(const char* call, std::uint64_t since_ns) {
  std::array<std::uint64_t, sizeof what / sizeof(std::uint64_t)> words{};
  std::memcpy(words.data(), call, std::min(strlen(call), sizeof words - 1));
  for (std::size_t i = 0; i < words.size(); ++i) what[i].store(words[i], std::memory_order_relaxed);
  awaited.store(kNobodyNamed, std::memory_order_relaxed);
  waiting_since.store(since_ns, std::memory_order_release);  // pairs with readers' acquire
}

void ThreadCounters::copy_what(char (&text)[sizeof(what)]) const {
  for (std::size_t i = 0; i < std::size(what); ++i) {
    const std::uint64_t word = what[i].load(std::memory_order_relaxed);
    std::memcpy(text + i * sizeof word, &word, sizeof word);
  }
}

ThreadCounters& take_thread_counters() {
  CountersRegion* const region = own_counters();
  if (region == nullptr) return spilled;
  at_thread_end(give_slot_back);
  MutexLock lock(published.slots);
  const auto thread = static_cast<std::int32_t>(syscall(SYS_gettid));
  for (std::uint32_t i = 0; i < kMostCountedThreads; ++i) {
    // The slot of an ended thread is reused, and its counts continue.
    if (region->threads[i].thread.load(std::memory_order_relaxed) != 0) continue;
    region->threads[i].thread.store(thread, std::memory_order_relaxed);
    std::atomic<std::uint32_t>& used = region->header.threads;
    used.store(std::max(used.load(std::memory_order_relaxed), i + 1), std::memory_order_relaxed);
    return *(own_thread_counters = &region->threads[i]);
  }
  region->header.uncounted.fetch_add(1, std::memory_order_relaxed);
  return *(own_thread_counters = &spilled);
}

CountersRegion* own_counters() {
  return the_region.load(std::memory_order_acquire);
}

Result<ListedMember> ListedMember::list(MemberKind kind, std::string_view name, int rank, int size,
                                        ServeText serve) {
  MutexLock lock(published.mutex);
  if (the_region.load() == nullptr) {
    MEMSPAN_TRY(map_at(nullptr, 0, -1), "taking memory for the counters");
    pthread_atfork(lock_for_fork, unlock_in_parent, forget_in_child);
    std::atexit(end_at_exit);
  }
  CountersRegion& region = *the_region.load();
  if (published.listed == 0) {
    if (rank <= 0)  // one warning is enough for a job
      for (const std::string& line : removed_variables()) log_line(LogLevel::kWarn, line);
    MEMSPAN_TRY_ASSIGN(auto table, CallTableFile::start_if_asked(), "reading the settings");
    MEMSPAN_PASS(read_settings(region, {kind, std::string(name), rank}, table != nullptr));
    MEMSPAN_TRY_ASSIGN(published.metrics, serve_own_metrics(serve), "serving metrics");
    published.table = std::move(table);
    if (Status status = show(region); !status.is_ok())
      log_line(LogLevel::kWarn,
               fmt::format("memspan-top will not see this process: {}", status.message()));
  }
  ++published.listed;
  const int slot = free_slot(region);
  if (slot < 0) return ListedMember(kUnlisted);
  MemberSlot& member = region.members[slot];
  std::memset(member.name, 0, sizeof member.name);
  std::memcpy(member.name, name.data(), std::min(name.size(), sizeof member.name - 1));
  member.rank.store(rank, std::memory_order_relaxed);
  member.size.store(size, std::memory_order_relaxed);
  member.memory_bytes.store(0, std::memory_order_relaxed);
  member.memory_used.store(0, std::memory_order_relaxed);
  member.kind.store(kind, std::memory_order_release);
  return ListedMember(slot);
}

ListedMember::~ListedMember() {
  if (slot_ == kNone) return;
  MutexLock lock(published.mutex);
  CountersRegion& region = *the_region.load();
  if (slot_ >= 0) region.members[slot_].kind.store(MemberKind::kNone, std::memory_order_release);
  if (published.listed == 0 || --published.listed > 0) return;
  write_trace();
  published.metrics.reset();
  published.table.reset();
  if (!published.pages) return;
  static_cast<void>(put_at(region, -1));
  published.pages.reset();
}

void ListedMember::set_memory(std::uint64_t bytes, std::uint64_t used) const {
  if (slot_ < 0) return;
  MemberSlot& member = the_region.load(std::memory_order_relaxed)->members[slot_];
  member.memory_bytes.store(bytes, std::memory_order_relaxed);
  member.memory_used.store(used, std::memory_order_relaxed);
}

void RecordedCall::begin() {
  if (recording.tables.load(std::memory_order_relaxed)) call_table().begin(call_);
  begin_ = nanoseconds_of(Clock::now());
}

void RecordedCall::end() const {
  if (recording.tables.load(std::memory_order_relaxed))
    call_table().end(call_, nanoseconds_of(Clock::now()) - begin_, is_good_);
  if (recording.traces.load(std::memory_order_relaxed))
    add_to_trace({call_, begin_, nanoseconds_of(Clock::now()), bytes_, peer_, kind_});
}

void record_wait(const char* call, Clock::time_point since, int awaited) {
  const std::uint64_t begin = nanoseconds_of(since);
  const std::uint64_t end = nanoseconds_of(Clock::now());
  ThreadCounters& own = thread_counters();
  add_own(own.waits, 1);
  add_own(own.waited_ns, end - begin);
  if (recording.traces.load(std::memory_order_relaxed))
    add_to_trace({.name = call, .begin = begin, .end = end, .peer = awaited});
}

}  // namespace memspan::inline observe
