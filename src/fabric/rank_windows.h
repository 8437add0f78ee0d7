// SPDX-License-Identifier: Apache-2.0
// One address range of a pool: a window of addresses for every rank, and how much of each is mapped
// here.
//
//   base | window 0         | window 1         | ...     each `stride` bytes
//        | mapped |.........| mapped   |.......|         . reserved, nothing there
//
// A copy holds a window while it uses it, and a held window is not unmapped. Holding takes two
// atomic instructions and no lock, and no thread waits for holders: retire() refuses new ones, and
// the last user unmaps.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/mutex.h"
#include "core/pages.h"
#include "core/status.h"
#include "device/memory.h"
#include "node/mapper_table.h"

namespace memspan {

// Thread-safe. An empty range has no addresses.
class RankWindows {
 public:
  // The range must outlive it; null: a range of no bytes.
  RankWindows(DeviceRange* range, std::uint64_t stride, std::uint32_t ranks)
      : range_(range),
        base_(range == nullptr ? 0 : reinterpret_cast<std::uint64_t>(range->base())),
        stride_(stride),
        bytes_(stride * ranks),
        windows_(std::make_unique<Window[]>(ranks)) {}

  std::uint64_t stride() const { return stride_; }
  std::uint64_t bytes() const { return bytes_; }
  std::byte* begin_of(std::uint32_t rank) const {
    return reinterpret_cast<std::byte*>(base_ + rank * stride_);
  }
  // Whether the address is in the range.
  bool contains(std::uint64_t address) const { return address - base_ < bytes_; }
  // The address must be in the range.
  std::uint32_t rank_of(std::uint64_t address) const {
    return static_cast<std::uint32_t>((address - base_) / stride_);
  }
  std::uint64_t offset_of(std::uint64_t address, std::uint32_t rank) const {
    return address - base_ - rank * stride_;
  }

  // Holds the window and returns its bytes, mapped until release(). 0: nothing is mapped or held.
  std::uint64_t hold(std::uint32_t rank) {
    Window& window = windows_[rank];
    std::uint32_t users = window.users.load(std::memory_order_relaxed);
    do {
      if ((users & kOpen) == 0) return 0;
    } while (!window.users.compare_exchange_weak(users, users + 1,  // pairs with map()
                                                 std::memory_order_acquire,
                                                 std::memory_order_relaxed));
    return window.bytes;
  }
  // The right to copy from and to a window that the caller holds.
  const Admission& admission(std::uint32_t rank) const { return windows_[rank].admission; }
  // True: the caller was the last user of a retired window, and calls unmap().
  [[nodiscard]] bool release(std::uint32_t rank) {
    // Pairs with itself: the last user comes after the copies of all others.
    return windows_[rank].users.fetch_sub(1, std::memory_order_acq_rel) == 2;
  }
  // Refuses new holders. True: no copy holds the window, and the caller calls unmap(). False: the
  // last holder does, or nothing was mapped.
  [[nodiscard]] bool retire(std::uint32_t rank) {
    return windows_[rank].users.fetch_and(~kOpen, std::memory_order_acq_rel) == (kOpen | 1);
  }
  // Whether nothing is mapped, so that map() may be called.
  bool is_free(std::uint32_t rank) const {
    return windows_[rank].users.load(std::memory_order_acquire) == 0;  // pairs with unmap()
  }

  // Maps `bytes` > 0 of the memory that `rank` gives. The window must be free, and the admission
  // outlives the mapping.
  Status map(std::uint32_t rank, const DeviceMemory& memory, std::uint64_t bytes,
             const Admission& admission) MEMSPAN_EXCLUDES(mutex_) {
    Window& window = windows_[rank];
    const auto whole = std::min<std::size_t>(memory.bytes(), align_up(bytes, kDeviceGranularity));
    MutexLock lock(mutex_);
    MEMSPAN_PASS(range_->map(rank * stride_, memory, whole));
    window.bytes = bytes;
    window.admission = admission;
    window.users.store(kOpen | 1, std::memory_order_release);  // pairs with hold()
    return Status::ok();
  }
  // Only after release() or retire() returned true.
  void unmap(std::uint32_t rank) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    static_cast<void>(range_->unmap(rank * stride_, stride_));
    windows_[rank].users.store(0, std::memory_order_release);  // pairs with is_free()
  }

 private:
  static constexpr std::uint32_t kOpen = std::uint32_t{1} << 31;
  struct Window {
    std::uint64_t bytes = 0;  // while it is mapped
    Admission admission = Admission::of_owner();
    // The holders, and 1 while it is mapped; kOpen while it can be held.
    std::atomic<std::uint32_t> users{0};
  };

  DeviceRange* const range_;
  const std::uint64_t base_;
  const std::uint64_t stride_;
  const std::uint64_t bytes_;
  const std::unique_ptr<Window[]> windows_;
  Mutex mutex_;  // of the range's mappings
};

}  // namespace memspan
