// SPDX-License-Identifier: Apache-2.0
// The segment: the small shared memory in which the processes of a job on one host see each other:
// which have joined, are dead, or sleep.
//
//   +--------+---------+---------+----
//   | header | peer 0  | peer 1  | ...     one PeerSlot (two pairs of cache lines) a peer
//   +--------+---------+---------+----
//
// The launcher makes it, or the lowest rank of a host if there is no launcher. A new segment is all
// zeros except for the header. Every wait checks `alarms` now and then, which grows with each death
// and each request to end the job.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/cpu.h"
#include "device/reservation.h"

namespace memspan::inline node {

// The limit for a job, over all its nodes.
inline constexpr int kMostPeers = 16384;

enum class PeerState : std::uint32_t {
  kAbsent = 0,  // has not joined yet
  kJoined = 1,
  kLeft = 2,  // finalised properly; may join again
  kLost = 3,  // died without leaving
};

// How a process begins to leave a job.
enum class EndKind : std::uint32_t { kFinalize = 1, kExit = 2 };

// Ends of a membership that wait(2) does not report, in place of its status.
inline constexpr int kUnseenEnd = -1;
inline constexpr int kReplacedProgram = -2;  // exec()
inline constexpr int kEndedByExit = -3;  // exit(0), or main returned, while others waited for it
inline constexpr int kEndedByFinalize = -4;  // shmem_finalize while others waited for it
inline constexpr int kDeparted = -5;         // mark_departed()
inline constexpr int kConnectionLost = -6;   // of another node

struct NodeHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t peers;
  std::uint64_t heap_stride;  // bytes between the ranks' parts of the heap memfd
  // 1: more processes than cores, so waits do not spin. Final from the first World::create() on.
  std::atomic<std::uint32_t> oversubscribed;
  std::atomic<std::uint32_t> library_seen;  // 1: a process of the job has loaded this library
  char secret[64];                          // hexadecimal, the job's
  alignas(kFalseSharingRange) std::atomic<std::uint32_t> alarms;
  std::atomic<std::uint32_t> deaths;
  std::atomic<std::uint32_t> exit_requested;  // 0 none, 1 being written, 2 exit_code/exit_rank hold
  std::atomic<std::int32_t> exit_code;
  std::atomic<std::int32_t> exit_rank;
  std::atomic<std::uint64_t> heap_bytes;   // what the first peer asked for; all must agree
  std::atomic<std::uint32_t> commit_mode;  // CommitMode plus one, in the same way
  // The lowest PE's decision for the allocation in progress: pgas's CommitPlan.
  std::atomic<std::uint32_t> commit_plan;
  // How PEs of this node reach each other: World's candidate plus one, in the same way.
  std::atomic<std::uint32_t> near_transport;
  // The last generation in which a peer has begun to leave (PeerSlot::ended); 0 none.
  std::atomic<std::uint32_t> ending;
  alignas(kFalseSharingRange) std::atomic<std::uint32_t> anybody_sleeps;  // 0: no peer sleeps
  // One bit for each core on which a process of the job may run: add_cores().
  alignas(kFalseSharingRange) std::atomic<std::uint64_t> cores[kMostCores / 64];
};

// A peer sets its sleeping flags before it sleeps. The first process that rings its doorbell clears
// them, so only one of many writers pays for the wake-up. A put rings if `sleeps_for_data` is set,
// a barrier if `sleeps` is. A flag may stay set after the peer woke: that costs one ring in vain.
struct PeerSlot {
  // Read by every writer after its store, written only when the peer goes to sleep.
  alignas(kFalseSharingRange) std::atomic<std::uint32_t> sleeps_for_data;
  std::atomic<std::uint32_t> sleeps;
  std::atomic<std::uint32_t> doorbell;  // futex word: grows with each ring
  alignas(kFalseSharingRange) std::atomic<PeerState> state;
  std::atomic<std::int32_t> pid;
  // The status of wait(2) if the launcher saw it die; else kUnseenEnd or a value below it.
  std::atomic<std::int32_t> wait_status;
  std::atomic<std::uint32_t> generation;  // grows with each join
  // The last generation that it has begun to leave. It makes no more calls in that generation and
  // waits until all others get this far (World::end).
  std::atomic<std::uint32_t> ended;
  std::atomic<EndKind> end_kind;  // how it ended; valid when `ended` is set
  // | wait: 32 | looks: 32 | of a long wait for a word that a peer must store, while some peer has
  // begun to leave; 0: no such wait.
  std::atomic<std::uint64_t> stuck;
  // 1 for the first that died or departed, 2 for the next; else 0.
  std::atomic<std::uint32_t> death;
  std::atomic<std::int32_t> data_owner;  // the process whose variables are in the rank's part
  std::atomic<std::uint64_t> program;    // StaticSegment::identity of them; 0 none

  bool is_dead() const { return death.load(std::memory_order_acquire) != 0; }
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(sizeof(PeerSlot) == 2 * kFalseSharingRange);

// A segment as an outsider sees it. Values.
struct SlotSeen {
  PeerState state;
  std::int32_t process;
};
struct SegmentSeen {
  std::string job;  // NodeSegment::job_name(); empty: not a segment of this version
  std::vector<SlotSeen> peers;
};

// Owns the mapping and the descriptor. Its contents are shared memory: every member function is
// thread-safe and process-safe.
class NodeSegment {
 public:
  static Result<NodeSegment> create(int peers, std::uint64_t heap_stride, bool oversubscribed);
  // Maps what another process created; kInvalidArgument when it is not a node segment of this
  // version.
  static Result<NodeSegment> attach(Fd descriptor);

  // Reads a segment from bytes that an outsider has mapped.
  static SegmentSeen look(const void* mapped, std::size_t bytes);

  NodeHeader& header() const { return *reinterpret_cast<NodeHeader*>(where_.base()); }
  PeerSlot& peer(int rank) const {
    return reinterpret_cast<PeerSlot*>(where_.base() + kPeersAt)[rank];
  }
  int peers() const { return static_cast<int>(header().peers); }
  bool is_oversubscribed() const {
    return header().oversubscribed.load(std::memory_order_relaxed) != 0;
  }
  int descriptor() const { return pages_.descriptor(); }
  // "job-1f2e...": the same in all processes of the job that have its secret, and in no other job.
  // Does not reveal the secret.
  std::string job_name() const;

  // A launcher may bind each process to its own cores. So each adds its usable cores when it joins.
  // Then all decide, with the same result, whether they are enough.
  void add_cores(const CoreSet& cores) const;
  void decide_oversubscription(int processes) const;

  // Marks a peer as dead and wakes all sleepers, unless it left properly or is already marked.
  // `wait_status` as in PeerSlot. True if this call marked it.
  bool mark_lost(int rank, int wait_status) const;
  // Marks a peer as departed for good and wakes all sleepers: waits that need it end as if it had
  // died. Does nothing if it already left or died.
  void mark_departed(int rank) const;
  // Asks every process of the job to end with `code`; the first request holds.
  void request_exit(int rank, int code) const;
  // Wakes every sleeper.
  void ring_all() const;
  // Wakes one peer. Not inline: it is rare.
  static void ring(PeerSlot& peer);

 private:
  void announce_loss(PeerSlot& lost) const;

  static constexpr std::size_t kPeersAt = 4 * kFalseSharingRange;
  static_assert(sizeof(NodeHeader) <= kPeersAt);
  NodeSegment(Pages pages, Reservation where)
      : pages_(std::move(pages)), where_(std::move(where)) {}
  Pages pages_;
  Reservation where_;
};

}  // namespace memspan::inline node
