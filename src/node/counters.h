// SPDX-License-Identifier: Apache-2.0
// What this process does, for those who watch it: the calls and bytes of each kind, what its
// threads wait for and for whom, and what it is a member of.
//
// All of it stands in a memfd of the process, which others of the same user find in /proc and map
// read-only (counters_reader.h). The kernel takes it back when the process ends, so a dead one
// leaves nothing. Layout:
//
//   | header | 16 member slots | slot of a thread | slot of a thread | ...
//
// Only its own thread writes a thread's slot, so that an addition is a load, an add and a store
// without a lock prefix. Members and waits are always there, since they cost nothing in the data
// path; calls are counted when MEMSPAN_COUNTERS=1, MEMSPAN_TRACE or MEMSPAN_PTRACER says so, and
// then the in-line paths of put and get are not taken (RouteTable::inline_peers), so that they cost
// nothing when it does not.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/clock.h"
#include "core/cpu.h"
#include "core/status.h"

namespace memspan {

inline std::uint64_t nanoseconds_of(Clock::time_point when) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count());
}

enum class CallKind : std::uint8_t {
  kPut,
  kGet,
  kAtomic,
  kSignal,      // alone or behind a put
  kCollective,  // barriers, too
  kCopy,        // of a pool
  kTransfer,    // between endpoints
};
inline constexpr std::size_t kCallKinds = 7;
// "put": of JSON, metrics and traces.
std::string_view name_of(CallKind kind);

enum class MemberKind : std::uint32_t { kNone = 0, kJob = 1, kPool = 2, kEndpoint = 3 };
std::string_view name_of(MemberKind kind);

// What a wait needs when it cannot name one peer.
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
  // For stacks (node/stacks.h), that were taken up.
  std::atomic<std::uint32_t> stack_requests;
};

// `kind` is written last and taken back first.
struct MemberSlot {
  std::atomic<MemberKind> kind;
  std::atomic<std::int32_t> rank;
  std::atomic<std::int32_t> size;
  std::atomic<std::uint64_t> memory_bytes;
  std::atomic<std::uint64_t> memory_used;
  char name[64];  // the same in all members of a job or pool, and in no other one's
};

struct alignas(kFalseSharingRange) ThreadCounters {
  std::atomic<std::uint64_t> calls[kCallKinds];
  std::atomic<std::uint64_t> bytes[kCallKinds];
  std::atomic<std::uint64_t> waits;      // that went past spinning; counted as calls are
  std::atomic<std::uint64_t> waited_ns;  // of those that are over
  std::atomic<std::int32_t> thread;      // 0: it ended; its counts stay
  std::atomic<std::int32_t> awaited;  // a rank, or kNobodyNamed; holds while waiting_since is set
  std::atomic<std::uint64_t> waiting_since;  // ns of CLOCK_MONOTONIC; 0: no long wait
  std::atomic<std::uint64_t> what[5];        // the waiting call's name, zeros behind it

  void begin_wait(const char* call, std::uint64_t since_ns);
  void end_wait() { waiting_since.store(0, std::memory_order_release); }
};

// Whole pages are mapped for it. Others than this build's read it: what changes it changes the
// version.
struct CountersRegion {
  CountersHeader header;
  MemberSlot members[kMostListed];
  ThreadCounters threads[kMostCountedThreads];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(sizeof(CountersHeader) == 32 && sizeof(MemberSlot) == 96);
static_assert(offsetof(ThreadCounters, waits) == 16 * kCallKinds && kCallKinds == 7);
static_assert(offsetof(ThreadCounters, what) == 16 * kCallKinds + 32);

// What is switched on for this process. Changes only before its first call.
struct Recording {
  std::atomic<bool> is_on;        // calls are counted: MEMSPAN_COUNTERS=1, or one of the next two
  std::atomic<bool> traces;       // MEMSPAN_TRACE
  std::atomic<bool> tables;       // MEMSPAN_PTRACER
  std::atomic<bool> only_counts;  // the first without the others: nobody looks at the clock
};
extern constinit Recording recording [[gnu::visibility("hidden")]];
inline bool is_recording() {
  return recording.is_on.load(std::memory_order_relaxed);
}

inline bool only_counts() {
  return recording.only_counts.load(std::memory_order_relaxed);
}

// musl loads no library that has such variables.
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

// For the slot's own thread.
inline void add_own(std::atomic<std::uint64_t>& counter, std::uint64_t more) {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

inline void count_call(CallKind kind, std::uint64_t bytes) {
  ThreadCounters& own = thread_counters();
  add_own(own.calls[static_cast<std::size_t>(kind)], 1);
  add_own(own.bytes[static_cast<std::size_t>(kind)], bytes);
}

// This process's region, for reading; null before the first ListedMember. It stays where it is, as
// memory of the process alone while nothing is listed.
const CountersRegion* own_counters();
// In CountersHeader::stack_requests. May be called in the handler of a signal.
void count_stack_request();

// A membership, listed while this lives. The first of a process makes the region visible and reads
// MEMSPAN_COUNTERS; when the last has gone it is no longer seen. Move-only value, any thread.
class ListedMember {
 public:
  ListedMember() = default;  // lists nothing
  // kInvalidArgument for a value of the variable that is not allowed. Where the system has no
  // descriptor for the region, or there are more than kMostListed, nothing is listed.
  static Result<ListedMember> list(MemberKind kind, std::string_view name, int rank, int size);
  ListedMember(ListedMember&& other) noexcept;
  ListedMember& operator=(ListedMember&& other) noexcept;
  ~ListedMember();

  // Of this member: what it has, and what of that is in use.
  void set_memory(std::uint64_t bytes, std::uint64_t used) const;

 private:
  explicit ListedMember(int slot) : slot_(slot) {}
  static constexpr int kNone = -1;
  static constexpr int kUnlisted = -2;  // keeps the region visible all the same
  int slot_ = kNone;
};

}  // namespace memspan
