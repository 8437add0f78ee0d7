// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/mapped_memory.h"

#include <iterator>
#include <utility>

namespace memspan::cuda {

Result<std::shared_ptr<std::byte>> MappedMemory::allocate(const Device& device, std::size_t bytes) {
  auto allocation = Allocation::create(device, bytes);
  if (!allocation.is_ok()) return allocation.status();
  const std::size_t whole = (*allocation)->bytes();
  auto made = Range::make(device, whole);
  if (!made.is_ok()) return made.status();
  MEMSPAN_PASS((*made)->map(0, **allocation, whole));
  const std::shared_ptr<Range> range(std::move(made).value());
  MutexLock lock(mutex_);
  // A released range may have had these addresses.
  std::erase_if(ranges_, [](const auto& entry) { return entry.second.range.expired(); });
  ranges_[reinterpret_cast<DevicePtr>(range->base())] = {whole, range};
  return std::shared_ptr<std::byte>(range, range->base());
}

std::shared_ptr<const void> MappedMemory::hold(DevicePtr pointer) {
  MutexLock lock(mutex_);
  const auto after = ranges_.upper_bound(pointer);
  if (after == ranges_.begin()) return nullptr;
  const auto& [base, known] = *std::prev(after);
  return pointer - base < known.bytes ? known.range.lock() : nullptr;
}

}  // namespace memspan::cuda
