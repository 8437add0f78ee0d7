// SPDX-License-Identifier: Apache-2.0
// Copies from and to the addresses of a pool. What each end is, its address says; all that is
// mapped here is memory, so that one copy does for any two ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/clock.h"
#include "core/status.h"
#include "device/host/copy.h"
#include "fabric/pool.h"

namespace memspan {

// What the caller says of an end; a local one may lie in the pool as well.
enum class CopyEnd { kLocal, kPool };
struct CopyEnds {
  CopyEnd from = CopyEnd::kLocal;
  CopyEnd to = CopyEnd::kLocal;
};

// A value; borrows both ends.
struct CopyPiece {
  const void* from = nullptr;
  void* to = nullptr;
  std::uint64_t bytes = 0;
};

// Where an address is in a pool.
struct PoolPlace {
  SpaceKind kind = SpaceKind::kHost;
  std::uint32_t rank = 0;
  std::uint64_t offset = 0;  // in the rank's stripe
};
// False when the address is in no space.
bool find_place(Pool& pool, const void* pointer, PoolPlace& place);

// The stripes that one end of a row of copies needs, held from their first use on: to hold and
// release for each piece would cost more than small pieces do.
class HeldStripes {
 public:
  explicit HeldStripes(Pool& pool) : pool_(pool) {}
  ~HeldStripes() { release(); }
  HeldStripes(const HeldStripes&) = delete;
  HeldStripes& operator=(const HeldStripes&) = delete;

  enum class Found {
    kLocal,  // in no space
    kHeld,   // in a space, mapped, and stays so until release()
    kNot,    // in a space, but not wholly in something that is mapped
  };
  Found find(const void* pointer, std::uint64_t bytes) {
    return last_->contains(reinterpret_cast<std::uint64_t>(pointer), bytes) ? Found::kHeld
                                                                            : look(pointer, bytes);
  }
  void release();

 private:
  // Empty where nothing is mapped.
  struct Held {
    std::uint64_t begin = 0;
    std::uint64_t mapped = 0;
    Stripes* space = nullptr;
    std::uint32_t rank = 0;

    bool contains(std::uint64_t address, std::uint64_t bytes) const {
      const std::uint64_t offset = address - begin;
      return offset < mapped && bytes <= mapped - offset;
    }
  };
  Found look(const void* pointer, std::uint64_t bytes);
  static void release(Held& held);

  Pool& pool_;
  std::array<Held, 4> held_ = {};  // each at the place that its rank gives it
  Held* last_ = held_.data();
};

// Does one copy after the other. One thread at a time; the pool must outlive it, and waits for its
// end before anything of it is unmapped.
class PoolCopier {
 public:
  // `limit`: how long all pieces together may wait for members. `bytes`: of all the pieces
  // together.
  PoolCopier(Pool& pool, const CopyEnds& ends, Duration limit, std::uint64_t bytes)
      : pool_(pool),
        ends_(ends),
        limit_(limit),
        is_past_caches_(bytes >= copies_past_caches_from()),
        from_(pool),
        to_(pool) {
    if (is_past_caches_) order_copies_past_caches();
  }
  ~PoolCopier() {
    if (is_past_caches_) order_copies_past_caches();
  }
  PoolCopier(const PoolCopier&) = delete;
  PoolCopier& operator=(const PoolCopier&) = delete;

  // When it returns ok the bytes are there, for this thread; for all others when the copier has
  // ended. kInvalidArgument when an end is null, is in no space
  // although it is said to be, or is not wholly in what its rank gave, or when both are local; and
  // as Pool::await() and Pool::check_way().
  Status copy(const CopyPiece& piece);
  // For a piece that will come soon.
  void prefetch(const CopyPiece& piece) const {
    prefetch_copy(is_past_caches_ ? nullptr : piece.to, piece.from, piece.bytes);
  }

 private:
  // After so many bytes who waits to unmap a stripe gets a turn.
  static constexpr std::uint64_t kBytesAtOnce = std::uint64_t{16} << 20;

  Status find(const CopyPiece& piece);
  void move(void* to, const void* from, std::uint64_t bytes) const;
  Status check(const CopyPiece& piece) const;
  void give_a_turn();
  Status check_way(const CopyPiece& piece);
  Status find_late(const CopyPiece& piece);
  Status copy_in_parts(const CopyPiece& piece);

  Pool& pool_;
  const CopyEnds ends_;
  const Duration limit_;
  const bool is_past_caches_;
  std::optional<Deadline> deadline_ = {};  // once a piece had to wait
  std::uint64_t left_ = kBytesAtOnce;
  HeldStripes from_;
  HeldStripes to_;
};

}  // namespace memspan
