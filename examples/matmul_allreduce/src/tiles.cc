// SPDX-License-Identifier: Apache-2.0
#include "tiles.h"

#include <algorithm>

namespace matmul {
namespace {

// Measured: a float product runs at full speed from about 256 x 1024 (139 GFLOP/s of 147 for
// large matrices) and loses a third at 64 rows; taller tiles convert A less often.
constexpr std::uint64_t kMostRows = 512;
constexpr std::uint64_t kLeastRows = 128;
constexpr std::uint64_t kLeastColumns = 256;
// Enough tiles a rank that most of the reduction hides behind the product.
constexpr std::uint64_t kTilesPerRank = 8;
// Slots start on a cache line.
constexpr std::uint64_t kSlotElements = 16;

std::uint64_t blocks(std::uint64_t length, std::uint64_t block) {
  return length / block + (length % block != 0 ? 1 : 0);
}

// Pieces of equal size (up to a multiple of 16, a vector register), none above `block`.
std::uint64_t even_block(std::uint64_t length, std::uint64_t block) {
  if (length <= block) return length;
  std::uint64_t each = blocks(length, blocks(length, block));
  return std::min(block, blocks(each, 16) * 16);
}

}  // namespace

TilePlan::TilePlan(const Shape& shape, std::uint64_t ranks) : shape_(shape), ranks_(ranks) {
  std::uint64_t rows = kMostRows, columns = kMostTileColumns;
  auto enough = [&] {
    std::uint64_t down = blocks(shape.m, rows), across = blocks(shape.n, columns);
    return down >= kTilesPerRank * ranks || across >= kTilesPerRank * ranks ||
           down * across >= kTilesPerRank * ranks;
  };
  while (!enough() && (rows > kLeastRows || columns > kLeastColumns)) {
    bool by_rows = rows > kLeastRows && (rows * 4 > columns || columns == kLeastColumns);
    by_rows ? rows /= 2 : columns /= 2;
  }
  tile_rows_ = even_block(shape.m, rows);
  tile_columns_ = even_block(shape.n, columns);
  row_blocks_ = blocks(shape.m, tile_rows_);
  column_blocks_ = blocks(shape.n, tile_columns_);
  slot_elements_ = blocks(tile_rows_ * tile_columns_, kSlotElements) * kSlotElements;
}

Tile TilePlan::tile(std::uint64_t number) const {
  Tile tile;
  tile.row = number % row_blocks_ * tile_rows_;
  tile.column = number / row_blocks_ * tile_columns_;
  tile.rows = std::min(tile_rows_, shape_.m - tile.row);
  tile.columns = std::min(tile_columns_, shape_.n - tile.column);
  return tile;
}

}  // namespace matmul
