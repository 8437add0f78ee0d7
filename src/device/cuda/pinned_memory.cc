// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/pinned_memory.h"

#include <fmt/format.h>

#include <new>

namespace memspan::cuda {
namespace {

constexpr std::size_t kMostIdleBytes = 16 * PinnedMemory::kMostBytes;

}  // namespace

Result<std::shared_ptr<std::byte>> PinnedMemory::take(const Device& device, std::size_t bytes) {
  if (bytes > kMostBytes)
    return Status(Code::kInternal, fmt::format("a buffer of {} bytes for copies by a CUDA stream; "
                                               "at most {} are allowed",
                                               bytes, kMostBytes));
  trim(device);
  const std::size_t size = std::bit_width((std::max(bytes, kLeastBytes) - 1) / kLeastBytes);
  const std::size_t whole = kLeastBytes << size;
  std::byte* base = take_idle(size);
  if (base == nullptr) {
    base = new (std::align_val_t{kLeastBytes}, std::nothrow) std::byte[whole];
    if (base == nullptr)
      return Status(Code::kOutOfMemory,
                    fmt::format("{} bytes for a copy by a CUDA stream are not available", whole));
    const Status pinned = from_cuda(fmt::format("pinning {} bytes", whole),
                                    device.functions->host_register(base, whole, kPortable));
    if (!pinned.is_ok()) {
      ::operator delete[](base, std::align_val_t{kLeastBytes});
      return pinned;
    }
  }
  return std::shared_ptr<std::byte>(base, [this, size](std::byte* of) { give_back(of, size); });
}

std::byte* PinnedMemory::take_idle(std::size_t size) {
  MutexLock lock(mutex_);
  Idle* const idle = idle_[size];
  if (idle == nullptr) return nullptr;
  idle_[size] = idle->next;
  idle_bytes_ -= kLeastBytes << size;
  return reinterpret_cast<std::byte*>(idle);
}

void PinnedMemory::give_back(std::byte* base, std::size_t size) {
  MutexLock lock(mutex_);
  idle_[size] = new (base) Idle{idle_[size]};
  idle_bytes_ += kLeastBytes << size;
}

void PinnedMemory::trim(const Device& device) {
  std::array<Idle*, kSizes> released{};
  {
    MutexLock lock(mutex_);
    if (idle_bytes_ <= kMostIdleBytes) return;
    released.swap(idle_);
    idle_bytes_ = 0;
  }
  for (Idle* idle : released)
    while (idle != nullptr) {
      auto* const base = reinterpret_cast<std::byte*>(idle);
      idle = idle->next;
      static_cast<void>(device.functions->host_unregister(base));
      ::operator delete[](base, std::align_val_t{kLeastBytes});
    }
}

}  // namespace memspan::cuda
