// SPDX-License-Identifier: Apache-2.0
// How a member writes its pipeline buffers, which the others read after a barrier.
//
// Data in another core's cache arrives fast if both cores share a cache, and several times more
// slowly than from memory if they do not. Which case holds differs between processors, and on a
// virtual machine from minute to minute. So it is measured (CopyChoice), with the reads. Members
// count the same calls, so all try the same way at a time; each finds by itself which one is
// faster.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include "core/clock.h"
#include "device/host/copy.h"

namespace memspan::pgas {

// The writes of one group. One thread at a time.
class StageWrites {
 public:
  // Calls of a kind by how many bytes they move; those below kLeastBytes are written as any memory.
  void begin(std::size_t kind, std::size_t bytes);
  void write(void* to, const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    if (way_ == nullptr || bytes < kLargeCopyBytes) {
      std::memcpy(to, from, bytes);
      return;
    }
    way_->copy(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
    is_unordered_ |= way_->is_past_caches;
  }
  // Before a barrier: members that are past it see the writes.
  void order() {
    if (is_unordered_) order_copies_past_caches();
    is_unordered_ = false;
  }
  // The time between the two does not count, since others may be late.
  void pause() {
    if (turn_.is_rated()) took_ += Clock::now() - since_;
  }
  void resume() {
    if (turn_.is_rated()) since_ = Clock::now();
  }
  void end();

  static constexpr std::size_t kKinds = 16;
  // Before the first trial: these calls find untouched pages.
  static constexpr std::uint32_t kCold = 8;

 private:
  static constexpr std::size_t kLeastBytes = 4096;
  static constexpr std::size_t kSizes = 8;  // 4 KiB and more, 16 KiB and more, ... 64 MiB and more

  struct Choice : CopyChoice {
    Choice() : CopyChoice(kCold) {}
  };
  std::array<std::array<Choice, kSizes>, kKinds> choices_;
  CopyChoice* choice_ = nullptr;
  CopyChoice::Turn turn_;
  const CopyWay* way_ = nullptr;
  bool is_unordered_ = false;
  std::size_t bytes_ = 0;
  Clock::time_point since_;
  Duration took_{};
};

}  // namespace memspan::pgas
