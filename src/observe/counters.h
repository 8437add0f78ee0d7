// SPDX-License-Identifier: Apache-2.0
// The activity of this process, for tools that watch it: the calls and bytes of each kind, the
// waits of its threads and the awaited peers, and its memberships.
//
// A memfd of the process holds all of it. Processes of the same user find the memfd in /proc and
// map it read-only (metrics.h). The kernel frees it when the process ends, so a dead
// process leaves nothing. Layout:
//
//   | header | 16 member slots | slot of a thread | slot of a thread | ...
//
// Only the owning thread writes a thread's slot, so an addition is a load, an add and a store
// without a lock prefix. Members and waits are always recorded, because they cost nothing in the
// data path. Calls are counted with MEMSPAN_COUNTERS=1, MEMSPAN_TRACE or MEMSPAN_PTRACER. Counting
// disables the inline paths of put and get (RouteTable::inline_peers), so those paths pay nothing
// for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "core/clock.h"
#include "core/cpu.h"
#include "core/status.h"

namespace memspan::inline observe {

inline std::uint64_t nanoseconds_of(Clock::time_point when) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count());
}

enum class CallKind : std::uint8_t {
  kPut,
  kGet,
  kAtomic,
  kSignal,      // with or without a put
  kCollective,  // including barriers
  kCopy,        // of a pool
  kTransfer,    // between endpoints
};
inline constexpr std::size_t kCallKinds = 7;
// "put": the name in JSON, metrics and traces.
std::string_view name_of(CallKind kind);

enum class MemberKind : std::uint32_t { kNone = 0, kJob = 1, kPool = 2, kEndpoint = 3 };
std::string_view name_of(MemberKind kind);

// The awaited peer of a wait that cannot name one.
inline constexpr std::int32_t kNobodyNamed = -1;

inline constexpr std::uint64_t kCountersMagic = 0x72746e636d736d6d;
inline constexpr std::uint32_t kCountersVersion = 2;
inline constexpr char kCountersLabel[] = "memspan-counters";
inline constexpr std::size_t kMostListed = 16;
inline constexpr std::size_t kMostCountedThreads = 128;

struct CountersHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::int32_t process;
  std::atomic<std::uint32_t> counts_calls;  // Recording::is_on
  std::atomic<std::uint32_t> threads;       // slots that have ever been in use
  std::atomic<std::uint32_t> uncounted;     // threads that found no slot
  // Requests for stacks (observe/stacks.cc) that the process accepted.
  std::atomic<std::uint32_t> stack_requests;
};

// `kind` is written last and cleared first.
struct MemberSlot {
  std::atomic<MemberKind> kind;
  std::atomic<std::int32_t> rank;
  std::atomic<std::int32_t> size;
  std::atomic<std::uint64_t> memory_bytes;
  std::atomic<std::uint64_t> memory_used;
  char name[64];  // equal in all members of a job or pool, and unique to it
};

struct alignas(kFalseSharingRange) ThreadCounters {
  std::atomic<std::uint64_t> calls[kCallKinds];
  std::atomic<std::uint64_t> bytes[kCallKinds];
  std::atomic<std::uint64_t> waits;  // waits that outlasted spinning; counted only while calls are
  std::atomic<std::uint64_t> waited_ns;  // of finished waits
  std::atomic<std::int32_t> thread;      // 0: the thread ended; its counts stay
  std::atomic<std::int32_t> awaited;  // a rank, or kNobodyNamed; valid while waiting_since is set
  std::atomic<std::uint64_t> waiting_since;  // ns of CLOCK_MONOTONIC; 0: no long wait
  std::atomic<std::uint64_t> what[5];        // the waiting call's name, padded with zeros

  void begin_wait(const char* call, std::uint64_t since_ns);
  // Copies the name; without a zero if it fills `text`.
  void copy_what(char (&text)[sizeof(what)]) const;
  void end_wait() { waiting_since.store(0, std::memory_order_release); }
};

// It occupies whole mapped pages. Other builds read it, so every change to it needs a new version.
struct CountersRegion {
  CountersHeader header;
  MemberSlot members[kMostListed];
  ThreadCounters threads[kMostCountedThreads];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(sizeof(CountersHeader) == 32 && sizeof(MemberSlot) == 96);
static_assert(offsetof(ThreadCounters, waits) == 16 * kCallKinds && kCallKinds == 7);
static_assert(offsetof(ThreadCounters, what) == 16 * kCallKinds + 32);

// The kinds of recording that are on. They change only while the process has no membership.
struct Recording {
  std::atomic<bool> is_on;        // calls are counted: MEMSPAN_COUNTERS=1, or one of the next two
  std::atomic<bool> traces;       // MEMSPAN_TRACE
  std::atomic<bool> tables;       // MEMSPAN_PTRACER
  std::atomic<bool> only_counts;  // only MEMSPAN_COUNTERS=1: calls do not read the clock
};
extern constinit Recording recording [[gnu::visibility("hidden")]];
inline bool is_recording() {
  return recording.is_on.load(std::memory_order_relaxed);
}

inline bool only_counts() {
  return recording.only_counts.load(std::memory_order_relaxed);
}

// musl cannot load a library with initial-exec variables.
#if defined(__GLIBC__)
#define MEMSPAN_QUICK_THREAD_LOCAL __attribute__((tls_model("initial-exec")))
#else
#define MEMSPAN_QUICK_THREAD_LOCAL
#endif
extern constinit thread_local ThreadCounters* own_thread_counters
    [[gnu::visibility("hidden")]] MEMSPAN_QUICK_THREAD_LOCAL;
[[gnu::cold, gnu::noinline]] ThreadCounters& take_thread_counters();
inline ThreadCounters& thread_counters() {
  ThreadCounters* const own = own_thread_counters;
  if (own == nullptr) [[unlikely]]
    return take_thread_counters();
  return *own;
}

// Call it only on the slot's own thread.
inline void add_own(std::atomic<std::uint64_t>& counter, std::uint64_t more) {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

inline void count_call(CallKind kind, std::uint64_t bytes) {
  ThreadCounters& own = thread_counters();
  add_own(own.calls[static_cast<std::size_t>(kind)], 1);
  add_own(own.bytes[static_cast<std::size_t>(kind)], bytes);
}

// Counts a public call for the lifetime of this object if recording is on. Otherwise it costs one
// well-predicted branch.
// Lives on the stack of the thread that makes the call. `call` must live forever.
class RecordedCall : NotCopyable {
 public:
  RecordedCall(CallKind kind, const char* call, int peer, std::uint64_t bytes)
      : kind_(kind), is_on_(is_recording()), peer_(peer), call_(call), bytes_(bytes) {
    if (is_on_ && !only_counts()) [[unlikely]]
      begin();
  }
  ~RecordedCall() {
    if (!is_on_) return;
    count_call(kind_, bytes_);
    if (begin_ != 0) [[unlikely]]
      end();
  }

  // Sets the outcome of the call, by default success, and returns it.
  Status ends(Status outcome) {
    is_good_ = outcome.is_ok();
    return outcome;
  }

 private:
  // Used only with a trace or a table.
  void begin();
  void end() const;

  const CallKind kind_;
  const bool is_on_;
  bool is_good_ = true;
  const int peer_;  // a rank, or -1
  const char* const call_;
  const std::uint64_t bytes_;
  std::uint64_t begin_ = 0;  // 0: the time is not needed
};

// Records a wait of this thread from `since` until now; `awaited` is a rank or kNobodyNamed.
void record_wait(const char* call, Clock::time_point since, int awaited);

// This process's region; null before the first ListedMember. Its address never changes.
// While nothing is listed, the region is private memory.
CountersRegion* own_counters();

// Call it at the first membership of a process: SIGUSR2 then makes it print its state (stacks.cc).
// Installs a handler only if SIGUSR2 would end the process, so a program's own handler stays, as
// does an ignored SIGUSR2. A handler that the program sets later replaces it.
Status answer_stack_requests(MemberKind kind, int rank);

class TextServer;  // metrics.h
using ServeText = Result<std::unique_ptr<TextServer>> (*)(std::string_view what,
                                                          std::string_view place,
                                                          std::function<std::string()> make_text);

// Lists a membership while it lives. The first one of a process reads MEMSPAN_COUNTERS and makes
// the region visible; the end of the last hides it. Move-only value, any thread.
class ListedMember {
 public:
  ListedMember() = default;  // lists nothing
  // kInvalidArgument for an invalid value of the variable. Lists nothing if the system has no
  // descriptor for the region, or if more than kMostListed are listed.
  // `serve` is serve_metrics (net/metrics_server.h): at MEMSPAN_METRICS, such as 127.0.0.1:9464, it
  // serves the counters until the last one ends. If that address is taken, a warning is logged.
  static Result<ListedMember> list(MemberKind kind, std::string_view name, int rank, int size,
                                   ServeText serve = nullptr);
  ListedMember(ListedMember&& other) noexcept { *this = std::move(other); }
  ListedMember& operator=(ListedMember&& other) noexcept {
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~ListedMember();

  // The memory of this member and how much of it is in use, in bytes.
  void set_memory(std::uint64_t bytes, std::uint64_t used) const;

 private:
  explicit ListedMember(int slot) : slot_(slot) {}
  static constexpr int kNone = -1;
  static constexpr int kUnlisted = -2;  // still keeps the region visible
  int slot_ = kNone;
};

}  // namespace memspan::inline observe
