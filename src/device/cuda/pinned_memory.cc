// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/pinned_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <new>

namespace memspan::cuda {
namespace {

constexpr std::align_val_t kPage{4096};
constexpr std::size_t kMostIdleBytes = std::size_t{64} << 20;

}  // namespace

Result<std::shared_ptr<std::byte>> PinnedMemory::take(const Device& device, std::size_t bytes) {
  const std::size_t whole = std::bit_ceil(std::max(bytes, static_cast<std::size_t>(kPage)));
  std::byte* base = nullptr;
  {
    MutexLock lock(mutex_);
    if (const auto found = idle_.find(whole); found != idle_.end()) {
      base = found->second;
      idle_.erase(found);
      idle_bytes_ -= whole;
    } else if (idle_bytes_ > kMostIdleBytes) {
      trim(device);
    }
  }
  if (base == nullptr) {
    base = new (kPage, std::nothrow) std::byte[whole];
    if (base == nullptr)
      return Status(Code::kOutOfMemory,
                    fmt::format("{} bytes for a copy by a CUDA stream are not available", whole));
    const Status pinned = from_cuda(fmt::format("pinning {} bytes", whole),
                                    device.functions->host_register(base, whole, kPortable));
    if (!pinned.is_ok()) {
      ::operator delete[](base, kPage);
      return pinned;
    }
  }
  return std::shared_ptr<std::byte>(base, [this, whole](std::byte* of) { give_back(of, whole); });
}

void PinnedMemory::give_back(std::byte* base, std::size_t bytes) {
  MutexLock lock(mutex_);
  idle_.emplace(bytes, base);
  idle_bytes_ += bytes;
}

void PinnedMemory::trim(const Device& device) {
  for (const auto& [bytes, base] : idle_) {
    static_cast<void>(device.functions->host_unregister(base));
    ::operator delete[](base, kPage);
  }
  idle_.clear();
  idle_bytes_ = 0;
}

}  // namespace memspan::cuda
