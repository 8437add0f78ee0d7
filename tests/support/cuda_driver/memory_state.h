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
  Ordinal device;
  ~Memory() { close(descriptor); }
};

// Memory at a device address, and where the stand-in itself sees it.
struct Mapping {
  std::shared_ptr<Memory> memory;
  std::size_t bytes;
  std::byte* own;
  bool is_accessible = false;
  bool is_allocated = false;  // by cuMemAlloc
  ~Mapping() { munmap(own, bytes); }
};
using Mappings = std::map<DevicePtr, std::shared_ptr<Mapping>>;

// Of all that follows.
extern std::mutex& mutex;
extern std::map<AllocationHandle, std::shared_ptr<Memory>>& handles;
extern std::map<DevicePtr, std::size_t>& reserved;
extern Mappings& mappings;

// The last entry that begins at the pointer or before.
template <typename Map>
auto entry_at(Map& map, DevicePtr pointer) {
  auto found = map.upper_bound(pointer);
  return found == map.begin() ? map.end() : std::prev(found);
}
Mappings::iterator mapping_of(DevicePtr pointer);

}  // namespace standin

#define STANDIN_CHECK(needs) \
  if (const ResultCode result = check(needs); result != kSuccess) return result
