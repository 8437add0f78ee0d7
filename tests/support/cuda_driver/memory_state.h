// SPDX-License-Identifier: Apache-2.0
// What the stand-in knows of memory and addresses. Never destroyed: streams may copy until the
// process has ended.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <iterator>
#include <map>

#include "standin.h"

namespace standin {

// Physical memory; lives as long as a handle or a mapping of it.
struct Memory {
  int descriptor;
  std::size_t bytes;
  bool is_shareable = true;  // was made with a shareable kind of handle
  AllocationHandle handle = 0;
  Ordinal device = 0;
  ~Memory() { close(descriptor); }
};
// A handle, until it is released as often as it was made or retained.
struct Held {
  std::shared_ptr<Memory> memory;
  unsigned count = 1;
};

enum class Maker {
  kMap,    // cuMemMap
  kAlloc,  // cuMemAlloc
  kPool,   // cuMemAllocAsync and its kin, also imported
  kIpc,    // cuIpcOpenMemHandle
};

// Memory at a device address, and where the stand-in itself sees it.
struct Mapping {
  std::shared_ptr<Memory> memory;
  std::size_t bytes;
  std::byte* own;
  bool is_accessible = false;
  Maker maker = Maker::kMap;
  PoolHandle pool = nullptr;
  ~Mapping() { munmap(own, bytes); }
};
using Mappings = std::map<DevicePtr, std::shared_ptr<Mapping>>;

// Of all that follows.
extern std::mutex& mutex;
extern std::map<AllocationHandle, Held>& handles;
extern std::map<DevicePtr, std::size_t>& reserved;
extern Mappings& mappings;

// The last entry that begins at the pointer or before.
template <typename Map>
auto entry_at(Map& map, DevicePtr pointer) {
  auto found = map.upper_bound(pointer);
  return found == map.begin() ? map.end() : std::prev(found);
}
Mappings::iterator mapping_of(DevicePtr pointer);

// Memory at an address of its own, by the calls of memory.cc; and what undoes it.
ResultCode map_new(DevicePtr* at, std::size_t bytes, Maker maker, PoolHandle pool);
ResultCode map_imported(DevicePtr* at, int descriptor, std::size_t bytes, Maker maker,
                        PoolHandle pool);
ResultCode unmap_whole(DevicePtr at);
// The memory of another process by the descriptor that this one has of it; -1 when there is none.
int open_of(pid_t process, int descriptor);

}  // namespace standin

#define STANDIN_CHECK(needs) \
  if (const ResultCode result = check(needs); result != kSuccess) return result
