// SPDX-License-Identifier: Apache-2.0
#include "world/heap_size.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "core/environment.h"
#include "core/log.h"
#include "core/remedy.h"
#include "memory/address_plan.h"
#include "memory/budget.h"

namespace memspan {
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

}  // namespace memspan
