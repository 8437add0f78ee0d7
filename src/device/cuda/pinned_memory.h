// SPDX-License-Identifier: Apache-2.0
// Pinned memory of the host for copies in a GPU's streams. The driver takes other memory of the
// host at once, before the stream has come to the copy, or waits for the stream within the call.
#pragma once

#include <fmt/format.h>

#include <array>
#include <bit>
#include <new>

#include "core/mutex.h"
#include "core/status.h"
#include "device/cuda/driver.h"

namespace memspan::cuda {

// Buffers that are used again, as pinning costs a system call and more. Thread-safe. Lives as long
// as the process.
class PinnedMemory {
 public:
  // Copies of more bytes pass through a buffer of this size in parts.
  static constexpr std::size_t kMostBytes = std::size_t{4} << 20;

  // At least so many bytes, of at most kMostBytes, until the last owner releases them, which may be
  // a call of a stream. The device's context must be current. kOutOfMemory names the size.
  Result<std::shared_ptr<std::byte>> take(const Device& device, std::size_t bytes)
      MEMSPAN_EXCLUDES(mutex_) {
    if (bytes > kMostBytes)
      return Status(Code::kInternal,
                    fmt::format("a buffer of {} bytes for copies by a CUDA stream; "
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

 private:
  static constexpr std::size_t kLeastBytes = 4096;  // a page
  static constexpr std::size_t kMostIdleBytes = 16 * kMostBytes;
  static constexpr std::size_t kSizes = std::bit_width(kMostBytes / kLeastBytes);

  // At the beginning of an idle buffer, so that giving it back allocates nothing.
  struct Idle {
    Idle* next;
  };
  std::byte* take_idle(std::size_t size) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Idle* const idle = idle_[size];
    if (idle == nullptr) return nullptr;
    idle_[size] = idle->next;
    idle_bytes_ -= kLeastBytes << size;
    return reinterpret_cast<std::byte*>(idle);
  }
  void give_back(std::byte* base, std::size_t size) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    idle_[size] = new (base) Idle{idle_[size]};
    idle_bytes_ += kLeastBytes << size;
  }
  // Releases all idle buffers if they are too many.
  void trim(const Device& device) MEMSPAN_EXCLUDES(mutex_) {
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

  Mutex mutex_;
  // By size: kLeastBytes, twice as many, and so on.
  std::array<Idle*, kSizes> idle_ MEMSPAN_GUARDED_BY(mutex_){};
  std::size_t idle_bytes_ MEMSPAN_GUARDED_BY(mutex_) = 0;
};

}  // namespace memspan::cuda
