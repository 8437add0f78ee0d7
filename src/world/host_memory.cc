// SPDX-License-Identifier: Apache-2.0
#include "world/host_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "core/environment.h"
#include "core/log.h"
#include "memory/address_plan.h"
#include "memory/budget.h"
#include "world/launch.h"

namespace memspan::inline world {
namespace {

constexpr const char* kCommitVariable = "MEMSPAN_COMMIT";
constexpr const char* kCommitNames[] = {"promise", "allocation", "touch"};  // by CommitMode

constexpr std::size_t kLeastDefault = std::size_t{16} << 20;

MEMSPAN_REMEDY(kHeapTooLarge, "heap-too-large",
               "One symmetric heap is larger than the memory of the host or control group.",
               "Set a smaller SHMEM_SYMMETRIC_SIZE (local_mem_size); raise `docker run --memory`.");

// The rest of `ulimit -v`, less a quarter for the program.
std::uint64_t free_addresses() {
  rlimit limit{};
  std::uint64_t pages = 0;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      !(std::ifstream("/proc/self/statm") >> pages))
    return ~std::uint64_t{0};
  const std::uint64_t used = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return (limit.rlim_cur - std::min<std::uint64_t>(limit.rlim_cur, used)) / 4 * 3;
}

// One heap larger than all memory can never be filled: refuse it by name, before reserving.
Status check_heap_size(std::size_t heap_bytes, std::uint64_t most, const std::string& source) {
  if (heap_bytes <= most) return Status::ok();
  return {Code::kOutOfMemory,
          fmt::format("a symmetric heap of {} ({} bytes) is more than the {} ({} bytes) of memory "
                      "that this host has ({}){}",
                      format_size(heap_bytes), heap_bytes, format_size(most), most, source,
                      kHeapTooLarge)};
}

std::size_t shrink(std::size_t bytes, std::uint64_t most, const std::string& source) {
  const std::size_t fitting = fitting_default(bytes, most);
  if (fitting < bytes)
    log_line(LogLevel::kInfo,
             fmt::format("the symmetric heap has {} instead of {}, since {} allows no more; "
                         "SHMEM_SYMMETRIC_SIZE sets another size",
                         format_size(fitting), format_size(bytes), source));
  return fitting;
}

// A launched program may start others before it joins, and those inherit its rank: the first has
// the place, until it is gone.
bool claim_place(PeerSlot& self) {
  const pid_t me = getpid();
  pid_t owner = self.data_owner.load(std::memory_order_acquire);
  if (owner == me) return true;
  if (owner != 0 && (kill(owner, 0) == 0 || errno != ESRCH)) return false;
  return self.data_owner.compare_exchange_strong(owner, me, std::memory_order_acq_rel);
}

Status move(const StaticSegment& data, const NodeSegment& segment, const Pages& heap, int rank,
            int index) {
  if (data.bytes > kStaticSegmentBytes)
    return {Code::kOutOfMemory, fmt::format("the program's variables have {} bytes, {} fit",
                                            data.bytes, kStaticSegmentBytes)};
  if (!claim_place(segment.peer(rank)))
    return {Code::kUnavailable, fmt::format("process {} has the place of this rank",
                                            segment.peer(rank).data_owner.load())};
  MEMSPAN_PASS(move_static_segment(data, heap, static_segment_offset(segment, index)));
  // Pairs with the acquire in World::connect_static_segments(); the barrier in between is enough.
  segment.peer(rank).program.store(data.identity, std::memory_order_release);
  return Status::ok();
}

Status share_with_launch(const Launch& launch) {
  // Descriptors of the launcher are left as they are.
  MEMSPAN_TRY_ASSIGN(Fd segment_descriptor, duplicate(launch.segment, kDuplicating),
                     "sharing variables");
  MEMSPAN_TRY_ASSIGN(const NodeSegment segment, NodeSegment::attach(std::move(segment_descriptor)),
                     "sharing");
  // The launcher reads it when the job is over, so no other line orders it.
  segment.header().library_seen.store(1, std::memory_order_relaxed);
  const StaticSegment data = find_static_segment();
  if (data.is_empty()) return Status::ok();
  MEMSPAN_TRY_ASSIGN(Fd heap_descriptor, duplicate(launch.heap, kDuplicating), "sharing variables");
  MEMSPAN_TRY_ASSIGN(const Pages heap, Pages::adopt(std::move(heap_descriptor)), "sharing");
  if (launch.rank >= segment.peers() || segment.peers() == 1) return Status::ok();
  return move(data, segment, heap, launch.rank, launch.nodes().index_of(launch.rank));
}

}  // namespace

Result<CommitMode> commit_mode_from_environment() {
  const std::string text = environment_or(kCommitVariable, kCommitNames[0]);
  for (const CommitMode mode :
       {CommitMode::kPromised, CommitMode::kAtAllocation, CommitMode::kAtTouch})
    if (text == kCommitNames[static_cast<int>(mode)]) return mode;
  return Status(Code::kInvalidArgument,
                fmt::format("{} is \"{}\"; allowed are {}, {} and {}", kCommitVariable, text,
                            kCommitNames[0], kCommitNames[1], kCommitNames[2]));
}

// Allocation is a barrier of all PEs if it also takes the memory.
Status check_same_commit_mode(const NodeSegment& segment, CommitMode mode) {
  std::uint32_t agreed = 0;
  const auto mine = static_cast<std::uint32_t>(mode) + 1;
  if (segment.header().commit_mode.compare_exchange_strong(agreed, mine) || agreed == mine)
    return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("{} is {} in this process and {} in another one of the job; all must have "
                      "the same",
                      kCommitVariable, kCommitNames[mine - 1], kCommitNames[agreed - 1])};
}

// A heap whose memory is taken at the first use may never be filled.
std::uint64_t most_heap_bytes(std::uint64_t memory_bytes, std::uint64_t stride, CommitMode mode) {
  const std::uint64_t most = stride - kInternalBytes - kStaticSegmentBytes;
  return mode == CommitMode::kAtTouch ? most : std::min(memory_bytes, most);
}

std::size_t fitting_default(std::size_t bytes, std::uint64_t most) {
  while (bytes > most && bytes > kLeastDefault) bytes /= 2;
  return bytes;
}

Result<std::size_t> agree_on_heap_size(const NodeSegment& segment, HeapSize wanted, int processes,
                                       CommitMode mode) {
  NodeHeader& header = segment.header();
  MEMSPAN_TRY_ASSIGN(const MemoryBudget budget, measure_memory_budget(), "measuring memory");
  const std::uint64_t most = most_heap_bytes(budget.total, header.heap_stride, mode);
  std::size_t bytes = wanted.bytes;
  std::uint64_t agreed = header.heap_bytes.load();
  if (wanted.is_default) {
    if (agreed != 0) bytes = std::min(bytes, static_cast<std::size_t>(agreed));
    bytes = shrink(bytes, most, budget.source);
    const std::uint64_t each = free_addresses() / static_cast<std::uint64_t>(processes);
    bytes = shrink(bytes, each - std::min<std::uint64_t>(each, kInternalBytes), "ulimit -v");
  }
  bytes = align_up(std::max(bytes, std::size_t{1}), kHeapGranularity);
  MEMSPAN_PASS(check_heap_size(bytes, most, budget.source));
  agreed = 0;
  if (header.heap_bytes.compare_exchange_strong(agreed, bytes) || agreed == bytes) return bytes;
  return Status(Code::kInvalidArgument,
                fmt::format("this process asks for a symmetric heap of {} bytes, another one of "
                            "the job for {}; all must ask for the same (SHMEM_SYMMETRIC_SIZE)",
                            bytes, agreed));
}

std::size_t static_segment_offset(const NodeSegment& segment, int index) {
  return (static_cast<std::size_t>(index) + 1) * segment.header().heap_stride - kStaticSegmentBytes;
}

void share_static_segment_at_start() {
  auto launch = Launch::from_environment();
  // A failure here occurs again in share_static_segment(), which logs it.
  if (launch.is_ok() && *launch && share_with_launch(**launch).is_ok()) return;
  StaticSegment data = find_static_segment();
  prepare_static_segment(data);
}

StaticSegment share_static_segment(const NodeSegment& segment, const Pages& heap, int rank,
                                   int index) {
  const StaticSegment data = find_static_segment();
  if (data.is_empty() || segment.peers() == 1) return data;
  const Status status = move(data, segment, heap, rank, index);
  if (status.is_ok()) return data;
  log_line(LogLevel::kWarn,
           fmt::format("global and static variables are not symmetric: {}", status.message()));
  return {};
}

}  // namespace memspan::inline world
