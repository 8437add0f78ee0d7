// SPDX-License-Identifier: Apache-2.0
// Copies from and to the addresses of a pool. The address of an end decides its kind. Memory mapped
// here is plain memory, so one copy serves any two ranks of this host. An end on another host makes
// the copy one of links (remote_copies.h).
#pragma once

#include "device/host/copy.h"
#include "fabric/remote_copies.h"

namespace memspan {

// The place of an address in a pool.
struct PoolPlace {
  RangeKind kind = RangeKind::kHost;
  std::uint32_t rank = 0;
  std::uint64_t offset = 0;  // in the rank's window
};
// Empty when the address is outside the pool.
std::optional<PoolPlace> find_place(Pool& pool, const void* pointer);

// The windows that one end of a row of copies needs. They are held from their first use on, because
// holding a window for each piece would cost more than a small piece.
class HeldWindows : NotCopyable {
 public:
  explicit HeldWindows(Pool& pool) : pool_(pool) {}
  ~HeldWindows() { release(); }

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

// The caller's statement about an end; a local end may also be in the pool.
enum class CopyEnd { kLocal, kPool };
struct CopyEnds {
  CopyEnd from = CopyEnd::kLocal;
  CopyEnd to = CopyEnd::kLocal;
};

// When the copier waits for a copy with an end on another host: at once, so that a failure belongs
// to that piece, or for all together.
enum class CopyCompletion { kEach, kTogether };

// A value; borrows both ends.
struct CopyPiece {
  const void* from = nullptr;
  void* to = nullptr;
  std::uint64_t bytes = 0;
};

// Does one copy after the other. One thread at a time. The pool must outlive it, and unmaps nothing
// that it uses.
class PoolCopier : NotCopyable {
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
        copy_here_(device_ == nullptr ? bytes : 0, MeasuredCopy::Shape::kPieces),
        left_(bytes_at_once()),
        from_(pool),
        to_(pool) {}

  // When it returns ok, this thread sees the bytes; other threads see them when the copier has
  // ended. A piece with an end on another host is complete when finish() returned ok.
  // kInvalidArgument: an end is null, outside the pool but given as inside, not entirely in its
  // rank's memory, or local without memory, or both are local. kStale: a rank's memory is gone.
  // Other failures are those of Pool::await() and Pool::check_reachability().
  Status copy(const CopyPiece& piece);
  // Waits for the copies with other hosts and returns their first failure. Pieces that a member
  // refused because it had left begin again when it has joined again.
  Status finish() { return remote_ == nullptr ? Status::ok() : settle(Status::ok()); }
  // Copies the pieces piece_at(next) to piece_at(count - 1). If it fails, `next` is the failed
  // piece, and those before it were copied.
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
  // Copies those of a row whose ends are held, or can be without a wait, under one guard.
  template <typename PieceAt>
  Status copy_held(std::size_t& next, std::size_t count, const PieceAt& piece_at) {
    volatile std::size_t done = next;  // read after a fault
    const auto row = [&] {
      for (std::size_t i = done; i < count; ++i) {
        if (i + kAhead < count) prefetch(piece_at(i + kAhead));
        const CopyPiece piece = piece_at(i);
        if (!may_begin(piece)) return;
        copy_here_(piece.to, piece.from, piece.bytes);
        done = i + 1;
      }
    };
    const auto fault = run_guarded(row);
    next = done;
    return fault ? explain(*fault, piece_at(next)) : Status::ok();
  }

  // How many pieces ahead the copier prefetches.
  static constexpr std::size_t kAhead = 4;
  // After so many bytes, the copier releases its windows, so that those of absent ranks are
  // unmapped.
  static constexpr std::uint64_t kBytesAtOnce = std::uint64_t{16} << 20;

  // With a device no row of pieces is copied by the processor.
  std::uint64_t bytes_at_once() const { return device_ == nullptr ? kBytesAtOnce : 0; }
  void prefetch(const CopyPiece& piece) const {
    prefetch_copy(copy_here_.is_past_caches() ? nullptr : piece.to, piece.from, piece.bytes);
  }
  // Holds both ends of a piece and counts its bytes. False: use copy(), if only to learn why the
  // piece is invalid.
  bool may_begin(const CopyPiece& piece) {
    if (left_ < piece.bytes || pool_.is_restricted() || !hold(piece)) return false;
    left_ -= piece.bytes;
    return true;
  }
  bool hold(const CopyPiece& piece);
  enum class Way { kHere, kByMessages };  // the latter with an end on another host
  Result<Way> find(const CopyPiece& piece);
  Status move_here(const CopyPiece& piece);
  [[gnu::cold]] Status move_by_device(const CopyPiece& piece) const;
  bool is_of_device(const void* pointer) const;
  Status explain(const CopyFault& fault, const CopyPiece& piece) const;
  Status check(const CopyPiece& piece) const;
  void give_a_turn();
  Status await_ends(const CopyPiece& piece);
  Status check_reachability(const CopyPiece& piece);
  Result<Way> find_late(const CopyPiece& piece);
  [[gnu::cold]] Status copy_remote(const CopyPiece& piece);
  Status begin(const CopyPiece& piece);
  Status settle(Status status);
  Status copy_again();
  Result<CopyPlace> place_of(const void* pointer);

  // The most that are under way at once.
  static constexpr std::size_t kMostBegun = 4096;

  Pool& pool_;
  const CopyEnds ends_;
  const Duration limit_;
  const CopyCompletion completion_;
  Device* const device_;  // whose memory is not the host's; null: all memory here is the host's
  MeasuredCopy copy_here_;
  std::optional<Deadline> deadline_ = {};  // once a piece had to wait
  std::uint64_t left_;
  HeldWindows from_;
  HeldWindows to_;
  std::vector<CopyPiece> begun_;  // the pieces with an end on another host that are not settled
  std::unique_ptr<RemoteCopies> remote_;  // once there was such a piece; ends before what is held
};

}  // namespace memspan
