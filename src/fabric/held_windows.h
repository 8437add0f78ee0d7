// SPDX-License-Identifier: Apache-2.0
// The place of an address in a pool, and the windows that copies hold.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "fabric/pool.h"

namespace memspan {

// The place of an address in a pool.
struct PoolPlace {
  RangeKind kind = RangeKind::kHost;
  std::uint32_t rank = 0;
  std::uint64_t offset = 0;  // in the rank's window
};
// False when the address is outside the pool.
bool find_place(Pool& pool, const void* pointer, PoolPlace& place);

// The windows that one end of a row of copies needs. They are held from their first use on, because
// holding a window for each piece would cost more than a small piece.
class HeldWindows {
 public:
  explicit HeldWindows(Pool& pool) : pool_(pool) {}
  ~HeldWindows() { release(); }
  HeldWindows(const HeldWindows&) = delete;
  HeldWindows& operator=(const HeldWindows&) = delete;

  enum class Found {
    kLocal,  // outside the pool
    kHeld,   // in an address range of the pool, mapped, and stays so until release()
    kNot,    // in an address range of the pool, but not entirely mapped, or the rank does not admit
             // this process
  };
  Found find(const void* pointer, std::uint64_t bytes) {
    return last_->contains(reinterpret_cast<std::uint64_t>(pointer), bytes) &&
                   last_->admission.is_valid()
               ? Found::kHeld
               : look(pointer, bytes);
  }
  void release();
  bool is_empty() const {
    return std::all_of(held_.begin(), held_.end(),
                       [](const Held& held) { return held.mapped == 0; });
  }

 private:
  struct Held {
    Held() {}  // NOLINT: clearing what an empty one does not use is a part of a small copy's time
    std::uint64_t begin = 0;
    std::uint64_t mapped = 0;  // 0: it is empty
    RankWindows* windows;
    std::uint32_t rank;
    Admission admission;

    bool contains(std::uint64_t address, std::uint64_t bytes) const {
      const std::uint64_t offset = address - begin;
      return offset < mapped && bytes <= mapped - offset;
    }
  };
  Found look(const void* pointer, std::uint64_t bytes);
  void release(Held& held);

  Pool& pool_;
  std::array<Held, 4> held_;  // each at the place that its rank gives it
  Held* last_ = held_.data();
};

}  // namespace memspan
