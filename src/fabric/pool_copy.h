// SPDX-License-Identifier: Apache-2.0
// Copies from and to the addresses of a pool. What each end is, its address says; all that is
// mapped here is memory, so that one copy does for any two ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/clock.h"
#include "core/status.h"
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

// When it returns ok the bytes are there. kInvalidArgument when an end is null, is in no space
// although it is said to be, or is not wholly in what its rank gave, or when both are local; and
// as Pool::await(), for at most `limit`. Thread-safe.
Status copy_piece(Pool& pool, const CopyPiece& piece, const CopyEnds& ends, Duration limit);

// The range's space and rank; false when the address is in no space.
struct PoolPlace {
  SpaceKind kind = SpaceKind::kHost;
  std::uint32_t rank = 0;
  std::uint64_t offset = 0;  // in the rank's stripe
};
inline bool find_place(Pool& pool, const void* pointer, PoolPlace& place) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  for (const SpaceKind kind : {SpaceKind::kHost, SpaceKind::kDevice}) {
    const Stripes& space = pool.space(kind);
    if (!space.contains(address)) continue;
    place.kind = kind;
    place.rank = space.rank_of(address);
    place.offset = space.offset_of(address, place.rank);
    return true;
  }
  return false;
}

// Copies piece after piece as copy_piece() does. Stripes stay held from one piece to the next, for
// some megabytes: the atomic instructions of holding would keep the processor from beginning a
// small piece while it waits for the memory of the one before. One thread at a time.
class PieceCopier {
 public:
  PieceCopier(Pool& pool, const CopyEnds& ends, Duration limit)
      : pool_(pool), ends_(ends), limit_(limit) {}
  ~PieceCopier() { let_go(); }
  PieceCopier(const PieceCopier&) = delete;
  PieceCopier& operator=(const PieceCopier&) = delete;

  Status copy(const CopyPiece& piece);

 private:
  // A stripe, or none.
  struct Held {
    Stripes* space = nullptr;
    std::uint32_t rank = 0;
    std::uint64_t begin = 0, bytes = 0;  // the addresses that stay mapped

    bool covers(std::uint64_t address, std::uint64_t size) const {
      return address - begin < bytes && size <= bytes - (address - begin);
    }
  };
  enum class Reach { kPlain, kHeld, kNot };
  Reach reach(const void* pointer, std::uint64_t bytes, CopyEnd said);
  void let_go();

  static constexpr std::size_t kMostHeld = 8;
  Pool& pool_;
  const CopyEnds ends_;
  const Duration limit_;
  std::array<Held, kMostHeld> held_ = {};  // each stripe has its place
  std::uint64_t left_ = 0;                 // bytes until it lets go
};

}  // namespace memspan
