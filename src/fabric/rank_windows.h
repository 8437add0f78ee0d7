// SPDX-License-Identifier: Apache-2.0
// One address range of a pool: a window of addresses for every rank, and how much of each is mapped
// here.
//
//   base | window 0         | window 1         | ...     each `stride` bytes
//        | mapped |.........| mapped   |.......|         . reserved, nothing there
//
// A copy holds a window while it uses it, and a held window is not unmapped. Holding takes two
// atomic instructions and no lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

#include "core/status.h"
#include "device/memory.h"
#include "device/pages.h"

namespace memspan {

// Thread-safe, but only one thread at a time maps and unmaps. An empty range has no addresses.
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
  // The bytes of `rank` that are mapped here; 0 if nothing is.
  std::uint64_t mapped(std::uint32_t rank) const {
    return windows_[rank].mapped.load(std::memory_order_acquire);
  }

  // Holds the window and returns its bytes, mapped until release(). 0: nothing is mapped or held.
  std::uint64_t hold(std::uint32_t rank) {
    Window& window = windows_[rank];
    // Sequentially consistent, as in unmap(): either it sees this holder, or this sees nothing
    // mapped.
    window.holders.fetch_add(1, std::memory_order_seq_cst);
    const std::uint64_t mapped = window.mapped.load(std::memory_order_seq_cst);
    if (mapped == 0) release(rank);
    return mapped;
  }
  void release(std::uint32_t rank) {
    windows_[rank].holders.fetch_sub(1, std::memory_order_release);  // pairs with unmap()
  }

  // Maps `bytes` > 0 of the memory that `rank` gives. Nothing may be mapped in its window yet.
  Status map(std::uint32_t rank, const DeviceMemory& memory, std::uint64_t bytes) {
    const auto whole = std::min<std::size_t>(memory.bytes(), align_up(bytes, kDeviceGranularity));
    MEMSPAN_PASS(range_->map(rank * stride_, memory, whole));
    windows_[rank].mapped.store(bytes, std::memory_order_release);
    return Status::ok();
  }
  // Waits for the holders. Does nothing if nothing is mapped.
  Status unmap(std::uint32_t rank) {
    Window& window = windows_[rank];
    if (window.mapped.exchange(0, std::memory_order_seq_cst) == 0) return Status::ok();
    while (window.holders.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
    return range_->unmap(rank * stride_, stride_);
  }

 private:
  struct Window {
    std::atomic<std::uint64_t> mapped{0};
    std::atomic<std::uint32_t> holders{0};
  };

  DeviceRange* const range_;
  const std::uint64_t base_;
  const std::uint64_t stride_;
  const std::uint64_t bytes_;
  const std::unique_ptr<Window[]> windows_;
};

}  // namespace memspan
