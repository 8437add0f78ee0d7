// SPDX-License-Identifier: Apache-2.0
#include "pgas/symmetric_memory.h"

#include <fmt/format.h>

#include <iterator>

#include "core/environment.h"
#include "core/thread.h"
#include "device/host/copy.h"
#include "memory/budget.h"
#include "pgas/exchange_texts.h"

namespace memspan::inline pgas {
namespace {

// The requests that the processes of a job compare when they allocate together.
enum class Step : std::uint64_t {
  kAllocate = 1,
  kFree,
  kReallocate,
  kCommit,
  kAllocateOnDevice,
  kFreeOnDevice
};

// The request of one process: the step, and two numbers that describe it.
struct Request {
  Step step;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

// By Step: the call, and the names of the two numbers of its Request.
constexpr const char* kStepTexts[][3] = {
    {"another call", "", ""},
    {"an allocation", "the size", "the alignment"},
    {"a free", "the block's offset", "the memory still needed"},
    {"a reallocation", "the block's offset", "the new size"},
    {"a commit", "the size", "the memory still needed"},
    {"an allocation in memory of a device (MEMSPAN_DEVICE)", "the size", "the alignment"},
    {"a free of memory of a device", "the block's offset", "the memory still needed"},
};

const char* step_name(std::uint64_t step) {
  return kStepTexts[step < std::size(kStepTexts) ? step : 0][0];
}

// Compares the requests of all, and how they went, `own` here: the own failure, which says most,
// else kInvalidArgument when they differ, else the first code that is not ok.
Status agree(Team& team, const char* what, const Request& mine, const Status& own) {
  const auto& texts = kStepTexts[static_cast<std::size_t>(mine.step)];
  const SignatureField fields[] = {{"the call", static_cast<std::uint64_t>(mine.step), step_name},
                                   {texts[1], mine.first},
                                   {texts[2], mine.second}};
  const std::uint64_t words[] = {fields[0].value, mine.first, mine.second,
                                 static_cast<std::uint64_t>(own.code())};
  const Status met = team.barrier(what, words, 4);
  MEMSPAN_PASS(own);
  MEMSPAN_PASS(met);
  MEMSPAN_PASS(compare_with_all(team, fields));
  for (int member = 0; member < team.size(); ++member)
    if (team.word(member, 3) != 0)
      return {static_cast<Code>(team.word(member, 3)), fmt::format("it failed on PE {}", member)};
  return Status::ok();
}

// How the PEs of a node take the memory of a block.
enum class CommitPlan : std::uint32_t {
  kTake,
  kTakeAfterPromises,  // what was promised before has been taken
  kPromise,
};

// One process of each node decides for all there: they would add up the same numbers. A promise
// leaves plenty, so only memory that is taken can be refused. Promises that leave less are kept
// first, as their count is an estimate. `claim` covers what all are promised until each has a claim
// of its own.
Status plan_commit(const Team& team, std::uint64_t bytes_each, std::atomic<std::uint32_t>& plan,
                   Claim& claim) {
  if (!team.is_node_leader()) return Status::ok();
  const auto members = static_cast<std::uint64_t>(team.near_members());
  const std::uint64_t all = bytes_each * members;
  const bool may_promise = team.world().heap().may_promise(bytes_each);
  if (may_promise) claim.set(all);
  MEMSPAN_TRY_ASSIGN(MemoryBudget budget, measure_memory_budget(), "measuring memory");
  const std::uint64_t promised = budget.claimed - std::min(budget.claimed, claim.bytes());
  CommitPlan decided = CommitPlan::kTake;
  if (may_promise && is_plentiful(budget.available, budget.claimed)) {
    decided = CommitPlan::kPromise;
  } else {
    claim.set(0);
  }
  if (decided == CommitPlan::kTake && promised != 0 &&
      !is_plentiful(budget.available - std::min(budget.available, all), promised)) {
    MEMSPAN_PASS(team.world().take_promised());
    MEMSPAN_TRY_ASSIGN(budget, measure_memory_budget(), "measuring memory");
    decided = CommitPlan::kTakeAfterPromises;
  }
  plan.store(static_cast<std::uint32_t>(decided), std::memory_order_relaxed);
  if (bytes_each <= budget.available / members) return Status::ok();
  return {Code::kOutOfMemory,
          fmt::format("{} more is needed ({} for each PE), {} is available ({}){}",
                      format_size(all), format_size(bytes_each), format_size(budget.available),
                      budget.source, kOutOfMemory)};
}

// Takes the pages behind a block on every process, or on none. The sizes are the same on all.
Status commit_together(Team& team, const char* what, void* block, std::size_t bytes) {
  SymmetricHeap& heap = team.world().heap();
  std::size_t needed = heap.uncommitted(block, bytes);
  if (needed == 0) return Status::ok();
  // The barriers of agree() order the plan's writes and reads.
  std::atomic<std::uint32_t>& plan = team.world().segment().header().commit_plan;
  Claim claim;
  Status own = caught([&] { return plan_commit(team, needed, plan, claim); });
  const Request request{Step::kCommit, bytes, needed};
  MEMSPAN_PASS(agree(team, what, request, own));
  own = caught([&] {
    const auto decided = static_cast<CommitPlan>(plan.load(std::memory_order_relaxed));
    if (decided == CommitPlan::kPromise) return heap.promise(block, bytes);
    if (decided == CommitPlan::kTakeAfterPromises) heap.forget_promised();
    return heap.commit(block, bytes);
  });
  return agree(team, what, request, own);
}

MEMSPAN_REMEDY(kHeapFull, "heap-full",
               "The symmetric heap of at least one PE has no free block of that size.",
               "Set a larger SHMEM_SYMMETRIC_SIZE (local_mem_size), or free unused blocks.");
MEMSPAN_REMEDY(kNotAllocated, "not-allocated",
               "The pointer is not the start of an allocated block, or was freed before.",
               "Free each block once, on all PEs, with the pointer that shmem_malloc returned.");

Status not_allocated(const void* pointer) {
  return {
      Code::kInvalidArgument,
      fmt::format("{} is not the start of an allocated symmetric block{}", pointer, kNotAllocated)};
}

Status no_room(const SymmetricHeap& heap, std::size_t bytes, std::size_t alignment) {
  const bool is_large_enough = bytes <= heap.allocator().largest_free();  // but for its alignment
  const std::string aligned = is_large_enough ? fmt::format(" at a multiple of {}", alignment) : "";
  return {Code::kOutOfMemory,
          fmt::format("{} bytes{} do not fit the symmetric heap of {} bytes ({} in use, largest "
                      "free piece {}); SHMEM_SYMMETRIC_SIZE sets its size{}",
                      bytes, aligned, heap.bytes(), heap.allocator().bytes_in_use(),
                      heap.allocator().largest_free(), kHeapFull)};
}

Status no_room(const DeviceHeap& heap, std::size_t bytes) {
  return {Code::kOutOfMemory,
          fmt::format("{} bytes do not fit the symmetric heap of {} bytes in memory of {} ({} in "
                      "use, largest free piece {}); MEMSPAN_DEVICE_HEAP_SIZE sets its size",
                      bytes, heap.bytes(), heap.device().name(), heap.allocator().bytes_in_use(),
                      heap.allocator().largest_free())};
}

// A new block, which is freed if not all processes have one.
template <typename Heap>
struct Free {
  Heap& heap;
  void operator()(std::byte* block) const { heap.free(block); }
};
template <typename Heap>
using HeldBlock = std::unique_ptr<std::byte, Free<Heap>>;

}  // namespace

Result<void*> allocate(Team& world_team, const char* what, std::size_t bytes,
                       std::size_t alignment) {
  SymmetricHeap& heap = world_team.world().heap();
  HeldBlock<SymmetricHeap> block(nullptr, {heap});
  const Status own = caught([&] {
    block.reset(heap.allocate(bytes, alignment));
    return block != nullptr ? Status::ok() : no_room(heap, bytes, alignment);
  });
  MEMSPAN_PASS(agree(world_team, what, {Step::kAllocate, bytes, alignment}, own));
  MEMSPAN_PASS(commit_together(world_team, what, block.get(), bytes));
  world_team.world().tell_heap_use();
  return static_cast<void*>(block.release());
}

Status free(Team& world_team, const char* what, void* pointer) {
  SymmetricHeap& heap = world_team.world().heap();
  std::uint64_t offset = static_cast<std::uint64_t>(static_cast<std::byte*>(pointer) - heap.base());
  Status own = heap.size_of(pointer) ? Status::ok() : not_allocated(pointer);
  MEMSPAN_PASS(agree(world_team, what, {Step::kFree, offset, 0}, own));
  heap.free(pointer);
  world_team.world().tell_heap_use();
  return Status::ok();
}

Result<void*> reallocate(Team& world_team, const char* what, void* pointer, std::size_t bytes) {
  SymmetricHeap& heap = world_team.world().heap();
  std::uint64_t offset = static_cast<std::uint64_t>(static_cast<std::byte*>(pointer) - heap.base());
  auto old_bytes = heap.size_of(pointer);
  Status own = old_bytes ? Status::ok() : not_allocated(pointer);
  MEMSPAN_PASS(agree(world_team, what, {Step::kReallocate, offset, bytes}, own));
  if (heap.resize(pointer, bytes)) {
    Status committed = commit_together(world_team, what, pointer, bytes);
    if (committed.is_ok()) {
      world_team.world().tell_heap_use();
      return pointer;
    }
    heap.resize(pointer, *old_bytes);
    return committed;
  }
  MEMSPAN_TRY_ASSIGN(void* moved, allocate(world_team, what, bytes, Allocator::kGranularity),
                     "moving a block");
  copy_bytes(moved, pointer, std::min<std::size_t>(*old_bytes, bytes));
  // Every process copies its own block. The old one must not be reused before all are done.
  MEMSPAN_PASS(world_team.barrier(what));
  heap.free(pointer);
  world_team.world().tell_heap_use();
  return moved;
}

Result<void*> allocate_on_device(Team& world_team, const char* what, std::size_t bytes,
                                 std::size_t alignment) {
  World& world = world_team.world();
  const Request request{Step::kAllocateOnDevice, bytes, alignment};
  if (world.device_heap() == nullptr) {
    // All are in the same call, or the texts below would be taken for something else.
    MEMSPAN_PASS(agree(world_team, what, request, Status::ok()));
    MEMSPAN_PASS(world.make_device_heap(exchange_by_barriers(world_team, what)));
    // Kernels of the device store there without a bell.
    world.waiting().has_threads = true;
  }
  DeviceHeap& heap = *world.device_heap();
  HeldBlock<DeviceHeap> block(heap.allocate(bytes, alignment), {heap});
  const Status own = block != nullptr ? Status::ok() : no_room(heap, bytes);
  MEMSPAN_PASS(agree(world_team, what, request, own));
  return static_cast<void*>(block.release());
}

Status clear_on_device(Team& world_team, void* pointer, std::size_t bytes) {
  Device& device = world_team.world().device_heap()->device();
  const std::vector<std::byte> zeros(std::min(bytes, std::size_t{1} << 20));
  for (std::size_t done = 0; done < bytes; done += zeros.size())
    MEMSPAN_TRY(device.copy(static_cast<std::byte*>(pointer) + done, zeros.data(),
                            std::min(zeros.size(), bytes - done)),
                "clearing symmetric memory of a device");
  return Status::ok();
}

Status free_on_device(Team& world_team, const char* what, void* pointer) {
  DeviceHeap* const heap = world_team.world().device_heap();
  const bool is_block = heap != nullptr && heap->has_block(pointer);
  const Status own =
      is_block ? Status::ok()
               : Status(Code::kInvalidArgument,
                        fmt::format("{} is not the start of an allocated symmetric block in memory "
                                    "of a device",
                                    pointer));
  const std::uint64_t offset =
      is_block ? static_cast<std::uint64_t>(static_cast<std::byte*>(pointer) - heap->base()) : 0;
  MEMSPAN_PASS(agree(world_team, what, {Step::kFreeOnDevice, offset, 0}, own));
  heap->free(pointer);
  return Status::ok();
}

}  // namespace memspan::inline pgas
