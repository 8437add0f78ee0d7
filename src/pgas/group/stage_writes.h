// SPDX-License-Identifier: Apache-2.0
// How a member writes its pipeline buffers, which the others read after a barrier: as any memory,
// or past the caches.
//
// Data in another core's cache arrives fast if both cores share a cache, and several times more
// slowly than from memory if they do not. Which case holds differs between processors, and on a
// virtual machine from minute to minute. So it is measured: now and then a few calls of a kind and
// size are timed both ways, and later calls take the faster way. Members count the same calls, so
// all try the same way at a time; each finds by itself which one is faster.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/clock.h"
#include "device/host/copy.h"

namespace memspan::pgas {

// The measurements of one kind of call. A value.
class MeasuredWay {
 public:
  // The way of the next call, and whether it is to be timed.
  struct Choice {
    bool is_past_caches;
    bool is_timed;
  };
  Choice next() {
    const std::uint32_t place = calls_++ % kPeriod;
    if (place == 0) best_ = {Duration::max(), Duration::max()};
    if (place == kTimed) is_past_caches_ = best_[1] < best_[0];
    // The first call of a way finds the buffer as the other way left it.
    if (place < kTimed) return {place >= kTimed / 2, true};
    return {is_past_caches_, false};
  }
  // The shortest says most: others may have been interrupted.
  void note(bool was_past_caches, Duration took) {
    Duration& best = best_[was_past_caches ? 1 : 0];
    if (took < best) best = took;
  }

  static constexpr std::uint32_t kTimed = 6;
  static constexpr std::uint32_t kPeriod = 512;
  // Before the first period: these calls find untouched pages, and are not timed.
  static constexpr std::uint32_t kCold = 8;

 private:
  std::uint32_t calls_ = kPeriod - kCold;
  bool is_past_caches_ = false;
  std::array<Duration, 2> best_{};
};

// The writes of one group. One thread at a time.
class StageWrites {
 public:
  // Calls of a kind by how many bytes they move; those below kLeastBytes are written as any memory.
  void begin(std::size_t kind, std::size_t bytes);
  void write(void* to, const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    if (!choice_.is_past_caches) {
      std::memcpy(to, from, bytes);
      return;
    }
    copy_past_caches(to, from, bytes);
    is_unordered_ = true;
  }
  // Before a barrier: members that are past it see the writes.
  void order() {
    if (is_unordered_) order_copies_past_caches();
    is_unordered_ = false;
  }
  // The time between the two does not count, since others may be late.
  void pause() {
    if (choice_.is_timed) took_ += Clock::now() - since_;
  }
  void resume() {
    if (choice_.is_timed) since_ = Clock::now();
  }
  void end();

  static constexpr std::size_t kKinds = 16;

 private:
  static constexpr std::size_t kLeastBytes = 4096;
  static constexpr std::size_t kSizes = 16;  // 4 KiB and more, ... 128 MiB and more

  std::array<std::array<MeasuredWay, kSizes>, kKinds> ways_{};
  MeasuredWay* way_ = nullptr;
  MeasuredWay::Choice choice_{};
  bool is_unordered_ = false;
  Clock::time_point since_;
  Duration took_{};
};

}  // namespace memspan::pgas
