// SPDX-License-Identifier: Apache-2.0
// The pieces that a transfer moves, each with an address here, one at the peer, and a size. They
// may be given one by one or by a rule.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
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

  // In messages: `local` is not sent.
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
  Piece at(std::uint64_t index) const {
    Piece piece;
    fill(index, {&piece, 1});
    return piece;
  }
};

// The bytes of all pieces.
std::uint64_t bytes_of(const Pieces& pieces);
// The cursor of a transfer that was at `from` and has moved so many bytes since.
Cursor advanced(const Pieces& pieces, Cursor from, std::uint64_t bytes);

// Piece i is rule(i).
template <typename Rule>
class PiecesByRule final : public Pieces {
 public:
  PiecesByRule(std::uint64_t count, Rule rule) : count_(count), rule_(std::move(rule)) {}
  std::uint64_t count() const override { return count_; }
  void fill(std::uint64_t first, std::span<Piece> out) const override {
    for (Piece& piece : out) piece = rule_(first++);
  }

 private:
  std::uint64_t count_;
  Rule rule_;
};

// The caller's arrays, which outlive it.
struct ArraysRule {
  void* const* local;
  const void* const* remote;
  const std::size_t* bytes;
  Piece operator()(std::uint64_t i) const {
    return {static_cast<std::byte*>(local[i]), reinterpret_cast<std::uint64_t>(remote[i]),
            bytes[i]};
  }
};
using PieceArrays = PiecesByRule<ArraysRule>;

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

// Pages of one size: page n of an end begins at base + n * page_bytes. A value.
struct Paging {
  std::uint64_t base = 0;
  std::vector<std::uint32_t> pages;
};

using MadePieces = Result<std::unique_ptr<const Pieces>>;
// From blocks to blocks of another size, when one size is a multiple of the other: a piece is one
// of the smaller blocks. kInvalidArgument when the ends do not fit, or leave the address space.
MadePieces strided_pieces(const Strides& local, const Strides& remote);
// Page i of one end's list and page i of the other's are a piece.
MadePieces paged_pieces(Paging local, Paging remote, std::uint64_t page_bytes);

// kInvalidArgument names the first element that is null or 0.
Status check_arrays(void* const* local, const void* const* remote, const std::size_t* bytes,
                    std::uint64_t count);

}  // namespace memspan::transfer
