// SPDX-License-Identifier: Apache-2.0
// Copies from and to the addresses of a pool. What each end is, its address says. Whatever is
// mapped here is plain memory, so that one copy does for any two ranks of this host; an end on
// another host makes it a plan of steps on links (copy_plan.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "device/host/copy.h"
#include "device/host/guarded_copy.h"
#include "fabric/copy_plan.h"
#include "fabric/held_windows.h"
#include "fabric/pool.h"

namespace memspan {

// What the caller says of an end; a local one may lie in the pool as well.
enum class CopyEnd { kLocal, kPool };
struct CopyEnds {
  CopyEnd from = CopyEnd::kLocal;
  CopyEnd to = CopyEnd::kLocal;
};

// When a copy with an end on another host is waited for: at once, so that a failure is that
// piece's, or together with the others.
enum class CopyCompletion { kEach, kTogether };

// A value; borrows both ends.
struct CopyPiece {
  const void* from = nullptr;
  void* to = nullptr;
  std::uint64_t bytes = 0;
};

// Does one copy after the other. One thread at a time; the pool must outlive it, and waits for its
// end before anything of it is unmapped.
class PoolCopier {
 public:
  // `limit`: how long all pieces together may wait for members. `bytes`: of all the pieces
  // together.
  PoolCopier(Pool& pool, const CopyEnds& ends, Duration limit, std::uint64_t bytes,
             CopyCompletion completion = CopyCompletion::kTogether)
      : pool_(pool),
        ends_(ends),
        limit_(limit),
        completion_(completion),
        device_(pool.other_device()),
        is_non_temporal_(device_ == nullptr && bytes >= copies_past_caches_from()),
        left_(bytes_at_once()),
        from_(pool),
        to_(pool) {
    if (is_non_temporal_) order_copies_past_caches();
  }
  ~PoolCopier() {
    if (is_non_temporal_) order_copies_past_caches();
  }
  PoolCopier(const PoolCopier&) = delete;
  PoolCopier& operator=(const PoolCopier&) = delete;

  // When it returns ok the bytes are there, for this thread; for all others when the copier has
  // ended. What has an end on another host is there when finish() returned ok. kInvalidArgument
  // when an end is null, is outside the pool although it is said to be inside, or is not wholly in
  // what its rank gave, when both are local, or when there is no memory at a local end; kStale: a
  // rank's memory is not there any more; and as Pool::await() and Pool::check_reachability().
  Status copy(const CopyPiece& piece);
  // Waits for what copy() has begun with other hosts: the first failure of it. Pieces that a member
  // refused because it had left are begun again when it has joined again.
  Status finish() { return remote_ == nullptr ? Status::ok() : settle(Status::ok()); }
  // Copies the pieces that piece_at(i) gives, from `next` to count - 1. A failure is that of piece
  // `next`; those before it were copied.
  template <typename PieceAt>
  Status copy_row(std::size_t& next, std::size_t count, const PieceAt& piece_at) {
    while (next < count) {
      MEMSPAN_PASS(copy_held(next, count, piece_at));
      if (next == count) break;
      MEMSPAN_PASS(copy(piece_at(next)));
      ++next;
    }
    return Status::ok();
  }

 private:
  // Those of a row whose ends are held, or can be without a wait: one guard for all of them.
  template <typename PieceAt>
  struct HeldRow {
    PoolCopier& copier;
    const PieceAt& piece_at;
    const std::size_t count;
    volatile std::size_t next;  // read after a fault

    void operator()() {
      for (std::size_t i = next; i < count; ++i) {
        if (i + kAhead < count) copier.prefetch(piece_at(i + kAhead));
        const CopyPiece piece = piece_at(i);
        if (!copier.may_begin(piece)) return;
        copier.move(piece.to, piece.from, piece.bytes);
        next = i + 1;
      }
    }
  };
  template <typename PieceAt>
  Status copy_held(std::size_t& next, std::size_t count, const PieceAt& piece_at) {
    HeldRow<PieceAt> row{*this, piece_at, count, next};
    const auto fault = run_guarded(row);
    next = row.next;
    return fault ? explain(*fault, piece_at(next)) : Status::ok();
  }

  // So many pieces ahead the caches are told what will come.
  static constexpr std::size_t kAhead = 4;
  // After so many bytes who waits to unmap a window gets a turn.
  static constexpr std::uint64_t kBytesAtOnce = std::uint64_t{16} << 20;

  // With a device no row of pieces is copied by the processor.
  std::uint64_t bytes_at_once() const { return device_ == nullptr ? kBytesAtOnce : 0; }
  void prefetch(const CopyPiece& piece) const {
    prefetch_copy(is_non_temporal_ ? nullptr : piece.to, piece.from, piece.bytes);
  }
  // Holds both ends of a piece and counts its bytes; false: copy() is needed, if only to say why
  // the piece cannot be.
  bool may_begin(const CopyPiece& piece) {
    if (left_ < piece.bytes || piece.bytes == 0 || pool_.is_restricted() || !hold(piece))
      return false;
    left_ -= piece.bytes;
    return true;
  }
  bool hold(const CopyPiece& piece);
  Status find(const CopyPiece& piece);
  void move(void* to, const void* from, std::uint64_t bytes) const {
    if (is_non_temporal_)
      copy_past_caches(to, from, bytes);
    else
      copy_bytes(to, from, bytes);
  }
  Status move_here(const CopyPiece& piece) const;
  Status move_guarded(const CopyPiece& piece) const;
  [[gnu::cold]] Status move_by_device(const CopyPiece& piece) const;
  bool is_of_device(const void* pointer) const;
  Status explain(const CopyFault& fault, const CopyPiece& piece) const;
  Status check(const CopyPiece& piece) const;
  void give_a_turn();
  Status await_ends(const CopyPiece& piece);
  Status check_reachability(const CopyPiece& piece);
  Status find_late(const CopyPiece& piece);
  Status copy_in_parts(const CopyPiece& piece);
  [[gnu::cold]] Status copy_remote(const CopyPiece& piece);
  Status begin_remote(const CopyPiece& piece);
  Status settle(Status status);
  Status copy_again();
  Result<CopyPlace> place_of(const void* pointer);
  bool hold_end(const void* pointer, std::uint64_t bytes, const CopyPlace& place,
                HeldWindows& held) const;

  // What has an end on another host.
  struct RemotePieces {
    RemotePieces(Device& device, Duration limit) : copies(device, limit) {}
    RemoteCopies copies;
    std::vector<CopyPiece> begun;  // and not settled
  };
  // So many of them are under way at once.
  static constexpr std::size_t kMostBegun = 4096;

  Pool& pool_;
  const CopyEnds ends_;
  const Duration limit_;
  const CopyCompletion completion_;
  Device* const device_;  // whose memory is not the host's; null: all memory here is the host's
  const bool is_non_temporal_;
  std::optional<Deadline> deadline_ = {};  // once a piece had to wait
  std::uint64_t left_;
  bool is_remote_ = false;  // find() has found a piece with an end on another host
  HeldWindows from_;
  HeldWindows to_;
  std::unique_ptr<RemotePieces> remote_;  // once there was such a piece; ends before what is held
};

}  // namespace memspan
