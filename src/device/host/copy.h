// SPDX-License-Identifier: Apache-2.0
// Copies bytes with the processor. The sizes of machine words are one load and one store, in line,
// so that an 8-byte word never tears. Up to a few cache lines the C library is fastest. Larger
// copies use our own loops with the widest vectors of the processor, or the C library without
// vectors.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "device/host/copy_choice.h"

namespace memspan::inline device {

// Below this size memcpy was the fastest.
inline constexpr std::size_t kLargeCopyBytes = 256;
// From this size on the way to copy is measured.
inline constexpr std::size_t kMeasuredCopyBytes = std::size_t{256} << 10;

// For kLargeCopyBytes or more. The ranges must not overlap.
void copy_large(void* to, const void* from, std::size_t bytes);

// One way to copy kLargeCopyBytes or more. Only order_copies_past_caches(), before the first and
// after the last, orders the stores of a way past the caches with others.
struct CopyWay {
  const char* name;
  void (*copy)(std::byte* to, const std::byte* from, std::size_t bytes);
  bool is_past_caches = false;
};
// Those that this processor has, at most CopyChoice::kMostWays; the first is the C library's.
std::span<const CopyWay> copy_ways();
void order_copies_past_caches();
// kInvalidArgument if MEMSPAN_COPY names no way of this processor. Then it is ignored.
Status check_copy_setting();

// One copy, or several, whose bytes together say which way is the fastest. One thread at a time.
// Other threads see its stores in order with others when it has ended.
class MeasuredCopy : NotCopyable {
 public:
  // `bytes`: of all the copies. Pieces and whole copies are measured apart.
  enum class Shape { kWhole, kPieces };
  MeasuredCopy(std::size_t bytes, Shape shape);
  ~MeasuredCopy();

  // The ranges must not overlap.
  void operator()(void* to, const void* from, std::size_t bytes);
  bool is_rated() const { return turn_.is_rated(); }
  bool is_past_caches() const { return way_ != nullptr && way_->is_past_caches; }

 private:
  void rated(std::byte* to, const std::byte* from, std::size_t bytes);

  CopyChoice* choice_ = nullptr;
  CopyChoice::Turn turn_;
  const CopyWay* way_ = nullptr;  // null: as copies of few bytes
  std::size_t bytes_ = 0;         // of what was rated
  Duration took_{};
  std::int64_t disturbances_ = 0;
};

// The way of whole copies from a size on, as far as this process has measured them.
struct CopyRate {
  std::size_t bytes;
  const char* way;
  double bytes_per_second;
};
std::vector<CopyRate> copy_rates();

// Prefetches the beginning of a copy that will come soon. Never fails, whatever the addresses.
inline void prefetch_copy(const void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kMost = 512;  // the processor prefetches the rest by itself
  const std::size_t end = bytes < kMost ? bytes : kMost;
  for (std::size_t i = 0; i < end; i += kLine) {
    __builtin_prefetch(static_cast<const char*>(from) + i);
    if (to != nullptr) __builtin_prefetch(static_cast<const char*>(to) + i, 1);
  }
}

// The ranges must not overlap. Stores are ordered like plain stores.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes == 8) [[likely]] {  // faster than the table that a switch may become
    std::memcpy(to, from, 8);
    return;
  }
  switch (bytes) {
    case 0:
      return;  // both pointers may be null then
    case 1:
      std::memcpy(to, from, 1);
      return;
    case 2:
      std::memcpy(to, from, 2);
      return;
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 16:
      std::memcpy(to, from, 16);
      return;
    default:
      if (bytes < kLargeCopyBytes)
        std::memcpy(to, from, bytes);
      else
        copy_large(to, from, bytes);
      return;
  }
}

inline void MeasuredCopy::operator()(void* to, const void* from, std::size_t bytes) {
  if (way_ == nullptr || bytes < kLargeCopyBytes)
    copy_bytes(to, from, bytes);
  else if (turn_.is_rated())
    rated(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
  else
    way_->copy(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
}

}  // namespace memspan::inline device
