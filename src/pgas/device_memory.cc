// SPDX-License-Identifier: Apache-2.0
#include "pgas/device_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "pgas/allocation_steps.h"
#include "pgas/exchange_texts.h"

namespace memspan::pgas {
namespace {

Status no_room(const DeviceHeap& heap, std::size_t bytes) {
  return {Code::kOutOfMemory,
          fmt::format("{} bytes do not fit the symmetric heap of {} bytes in memory of {} ({} in "
                      "use, largest free piece {}); MEMSPAN_DEVICE_HEAP_SIZE sets its size",
                      bytes, heap.bytes(), heap.device().name(), heap.allocator().bytes_in_use(),
                      heap.allocator().largest_free())};
}

}  // namespace

Result<void*> allocate_on_device(Team& world_team, const char* what, std::size_t bytes,
                                 std::size_t alignment) {
  World& world = world_team.world();
  const Request request{Step::kAllocateOnDevice, bytes, alignment};
  if (world.device_heap() == nullptr) {
    // All are in the same call, or the texts below would be taken for something else.
    MEMSPAN_PASS(agree(world_team, what, request, Code::kOk));
    MEMSPAN_PASS(world.make_device_heap(exchange_by_barriers(world_team, what)));
    // Kernels of the device store there without a bell.
    world.waiting().has_threads = true;
  }
  DeviceHeap& heap = *world.device_heap();
  std::byte* const block = heap.allocate(bytes, alignment);
  const Status own = block != nullptr ? Status::ok() : no_room(heap, bytes);
  const Status all = worse(own, agree(world_team, what, request, own.code()));
  if (all.is_ok()) return static_cast<void*>(block);
  if (block != nullptr) heap.free(block);
  return all;
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
  MEMSPAN_PASS(worse(own, agree(world_team, what, {Step::kFreeOnDevice, offset, 0}, own.code())));
  heap->free(pointer);
  return Status::ok();
}

}  // namespace memspan::pgas
