// SPDX-License-Identifier: Apache-2.0
// The pieces that a transfer moves, each with an address here, one at the peer, and a size. They
// may be given one by one or by a rule.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"

namespace memspan::transfer {

enum class Direction : std::uint8_t { kRead = 0, kWrite = 1 };

// A value.
struct Piece {
  std::byte* local = nullptr;
  std::uint64_t remote = 0;
  std::size_t bytes = 0;

  // Of messages: `local` is not sent.
  static void fields(auto& codec, auto& self) { codec(self.remote, self.bytes); }
};

// How far a transfer has come: all pieces before `piece`, and so many bytes of that one. A value.
struct Cursor {
  std::uint64_t piece = 0;
  std::uint64_t offset = 0;
};

// Immutable.
class Pieces {
 public:
  virtual ~Pieces() = default;
  virtual std::uint64_t count() const = 0;
  // Writes the pieces from `first` on; there are enough of them.
  virtual void fill(std::uint64_t first, std::span<Piece> out) const = 0;
};

// The bytes of all pieces.
std::uint64_t bytes_of(const Pieces& pieces);
// The cursor of a transfer that was at `from` and has moved so many bytes since.
Cursor advanced(const Pieces& pieces, Cursor from, std::uint64_t bytes);

// The caller's arrays, which outlive it.
class PieceArrays final : public Pieces {
 public:
  PieceArrays(void* const* local, const void* const* remote, const std::size_t* bytes,
              std::uint64_t count)
      : local_(local), remote_(remote), bytes_(bytes), count_(count) {}
  std::uint64_t count() const override { return count_; }
  void fill(std::uint64_t first, std::span<Piece> out) const override {
    for (Piece& piece : out) {
      piece = {static_cast<std::byte*>(local_[first]),
               reinterpret_cast<std::uint64_t>(remote_[first]), bytes_[first]};
      ++first;
    }
  }

 private:
  void* const* local_;
  const void* const* remote_;
  const std::size_t* bytes_;
  std::uint64_t count_;
};

// Owns them.
class PieceList final : public Pieces {
 public:
  explicit PieceList(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}
  std::uint64_t count() const override { return pieces_.size(); }
  void fill(std::uint64_t first, std::span<Piece> out) const override {
    std::copy_n(pieces_.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
  }

 private:
  std::vector<Piece> pieces_;
};

// Blocks at equal distances: block i begins at base + i * stride. A value.
struct Strides {
  std::uint64_t base = 0;
  std::int64_t stride = 0;
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
};

// From blocks to blocks of another size, when one size is a multiple of the other: a piece is one
// of the smaller blocks.
class StridedPieces final : public Pieces {
 public:
  // kInvalidArgument when the ends do not fit, or leave the address space.
  static Result<StridedPieces> make(const Strides& local, const Strides& remote);
  std::uint64_t count() const override { return count_; }
  void fill(std::uint64_t first, std::span<Piece> out) const override;

 private:
  StridedPieces(const Strides& local, const Strides& remote)
      : local_(local),
        remote_(remote),
        piece_bytes_(std::min(local.bytes, remote.bytes)),
        count_(std::max(local.count, remote.count)) {}
  std::uint64_t address(const Strides& end, std::uint64_t piece) const {
    const std::uint64_t pieces_a_block = end.bytes / piece_bytes_;
    return end.base + piece / pieces_a_block * static_cast<std::uint64_t>(end.stride) +
           piece % pieces_a_block * piece_bytes_;
  }
  Strides local_;
  Strides remote_;
  std::uint64_t piece_bytes_;
  std::uint64_t count_;
};

// Pages of one size: page n of an end begins at base + n * page_bytes. A value.
struct Paging {
  std::uint64_t base = 0;
  std::vector<std::uint32_t> pages;
};

// Page i of one end's list and page i of the other's are a piece.
class PagedPieces final : public Pieces {
 public:
  static Result<PagedPieces> make(Paging local, Paging remote, std::uint64_t page_bytes);
  std::uint64_t count() const override { return local_.pages.size(); }
  void fill(std::uint64_t first, std::span<Piece> out) const override;

 private:
  PagedPieces(Paging local, Paging remote, std::uint64_t page_bytes)
      : local_(std::move(local)), remote_(std::move(remote)), page_bytes_(page_bytes) {}
  Paging local_;
  Paging remote_;
  std::uint64_t page_bytes_;
};

// kInvalidArgument names the first element that is null or 0.
Status check_arrays(void* const* local, const void* const* remote, const std::size_t* bytes,
                    std::uint64_t count);

}  // namespace memspan::transfer
