// SPDX-License-Identifier: Apache-2.0
// How the result is cut into tiles, and who reduces which.
//
//            column block 0   1   2
//   row block 0   [0]        [2] [4]      tile numbers run down the columns, because a column of
//   row block 1   [1]        [3] [5]      tiles shares one converted panel of B
//
// Tile t belongs to rank t mod ranks, as that rank's tile number t / ranks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace matmul {

struct Shape {
  std::uint64_t m = 0, k = 0, n = 0;
};

struct Tile {
  std::uint64_t row = 0, column = 0;  // of its first element
  std::uint64_t rows = 0, columns = 0;
  std::uint64_t elements() const { return rows * columns; }
};

inline constexpr std::uint64_t kMostTileColumns = 1024;

// A value: the same on every rank.
class TilePlan {
 public:
  TilePlan(const Shape& shape, std::uint64_t ranks);

  std::uint64_t tiles() const { return row_blocks_ * column_blocks_; }
  Tile tile(std::uint64_t number) const;
  std::uint64_t tile_rows() const { return tile_rows_; }        // of the largest tile
  std::uint64_t tile_columns() const { return tile_columns_; }  // of the largest tile

  std::uint64_t owner(std::uint64_t number) const { return number % ranks_; }
  std::uint64_t owned_by(std::uint64_t rank) const {
    return tiles() / ranks_ + (rank < tiles() % ranks_ ? 1 : 0);
  }

  // Staging memory of one rank: a slot for each (tile it may own, source). All ranks' tiles
  // together are one result, so that this is about one matrix of partial products.
  std::uint64_t slot_elements() const { return slot_elements_; }
  std::uint64_t slots() const { return (tiles() + ranks_ - 1) / ranks_ * ranks_; }
  // The slot, at its owner, for what `source` computes of tile `number`.
  std::uint64_t slot(std::uint64_t number, std::uint64_t source) const {
    return number / ranks_ * ranks_ + source;
  }

 private:
  Shape shape_;
  std::uint64_t ranks_;
  std::uint64_t tile_rows_ = 0, tile_columns_ = 0;
  std::uint64_t row_blocks_ = 0, column_blocks_ = 0;
  std::uint64_t slot_elements_ = 0;
};

}  // namespace matmul
