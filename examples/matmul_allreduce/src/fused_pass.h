// SPDX-License-Identifier: Apache-2.0
// The fused form's work, by host calls or in a block of a kernel (calls.h): the same algorithm over
// every tile, or over each blocks-th group of tiles, one of each owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "convert.h"
#include "gemm.h"
#include "options.h"
#include "pages.h"
#include "workspace.h"

namespace matmul {

// What a pass works with; all of it outlives the pass.
struct FusedJob {
  const JobSpec& spec;
  Place place;
  const TilePlan& tiles;
  Workspace& workspace;
  Send send;
};

// One thread at a time. Between two runs all ranks must meet in a barrier.
template <typename Calls>
class FusedPass {
 public:
  FusedPass(const FusedJob& job, Gemm& gemm, std::uint64_t block, std::uint64_t blocks)
      : job_(job),
        gemm_(gemm),
        block_(block),
        blocks_(blocks),
        sum_(kPieceElements * kPartialBytes) {
    if (job.place.ranks == 1) return;
    for (Pages& buffer : in_flight_) buffer = Pages(job.tiles.slot_elements() * kPartialBytes);
  }
  bool is_valid() const {
    return in_flight_[0].is_valid() && in_flight_[1].is_valid() && sum_.is_valid();
  }
  // Returns when the part of this rank's result is complete and its own puts are.
  void run();

 private:
  // A sum and what is added to it stay in the first-level cache. No row of a tile is longer.
  static constexpr std::uint64_t kPieceElements = 4096;
  static_assert(kPieceElements >= kMostTileColumns);
  // Consecutive elements of a tile, in the slots and in the result alike.
  struct Piece {
    std::uint64_t in_slot = 0, in_result = 0;  // the first element
    std::uint64_t count = 0;
    bool is_last = false, is_only = false;  // of the tile
  };

  std::uint64_t ranks() const { return static_cast<std::uint64_t>(job_.place.ranks); }
  std::uint64_t rank() const { return static_cast<std::uint64_t>(job_.place.rank); }
  bool is_mine(std::uint64_t tile) const { return tile / ranks() % blocks_ == block_; }
  // The group of the next tile to reduce.
  std::uint64_t next_group() const { return block_ + reduced_ * blocks_; }
  std::byte* slot(std::uint64_t tile, std::uint64_t source) const;
  void compute_own(std::uint64_t tile);
  void compute_there(std::uint64_t tile, void* there);
  void compute_and_put(std::uint64_t tile);
  void compute(std::uint64_t tile);
  std::uint64_t* arrived(std::uint64_t tile) const;
  bool is_next_complete() const;
  void wait_for_next() const;
  void reduce_next();
  void add_slots(const Piece& piece, std::uint64_t number);
  void send(const Piece& piece, std::uint64_t number) const;

  const FusedJob& job_;
  Gemm& gemm_;
  std::uint64_t block_, blocks_;
  Pages in_flight_[2];  // a product stays here until its put is complete
  int next_buffer_ = 0;
  Pages sum_;  // of one piece
  std::uint64_t round_ = 0;
  // Of the tiles of this pass that this rank owns: how many are computed, and how many reduced.
  std::uint64_t computed_ = 0, reduced_ = 0;
};

template <typename Calls>
void FusedPass<Calls>::run() {
  ++round_;
  computed_ = reduced_ = 0;
  for (std::uint64_t tile = 0; tile < job_.tiles.tiles(); ++tile) {
    if (!is_mine(tile)) continue;
    compute(tile);
    while (reduced_ < computed_ && is_next_complete()) reduce_next();
  }
  while (reduced_ < computed_) {
    wait_for_next();
    reduce_next();
  }
  for (std::uint64_t tile = 0; tile < job_.tiles.tiles(); ++tile)
    if (is_mine(tile) && job_.tiles.owner(tile) != rank())
      Calls::wait_until_at_least(job_.workspace.finished(job_.tiles, tile), round_);
  Calls::quiet();
}

template <typename Calls>
std::byte* FusedPass<Calls>::slot(std::uint64_t tile, std::uint64_t source) const {
  return job_.workspace.partials() +
         job_.tiles.slot(tile, source) * job_.tiles.slot_elements() * kPartialBytes;
}

template <typename Calls>
std::uint64_t* FusedPass<Calls>::arrived(std::uint64_t tile) const {
  return job_.workspace.arrived(tile / ranks());
}

template <typename Calls>
void FusedPass<Calls>::compute(std::uint64_t tile) {
  const std::uint64_t owner = job_.tiles.owner(tile);
  if (owner == rank()) return compute_own(tile);
  void* there =
      job_.send == Send::kPut ? nullptr : Calls::reach(slot(tile, rank()), static_cast<int>(owner));
  there != nullptr ? compute_there(tile, there) : compute_and_put(tile);
}

template <typename Calls>
void FusedPass<Calls>::compute_own(std::uint64_t tile) {
  Tile where = job_.tiles.tile(tile);
  gemm_.multiply(where, slot(tile, rank()), where.columns);
  ++computed_;
}

template <typename Calls>
void FusedPass<Calls>::compute_there(std::uint64_t tile, void* there) {
  Tile where = job_.tiles.tile(tile);
  gemm_.multiply(where, there, where.columns);
  Calls::fence();
  Calls::add(arrived(tile), 1, static_cast<int>(job_.tiles.owner(tile)));
}

template <typename Calls>
void FusedPass<Calls>::compute_and_put(std::uint64_t tile) {
  Tile where = job_.tiles.tile(tile);
  void* product = in_flight_[next_buffer_].data();
  next_buffer_ = 1 - next_buffer_;
  gemm_.multiply(where, product, where.columns);
  // The product before this one had a whole tile's time to travel: its buffer is free after this.
  Calls::quiet();
  Calls::put_and_add(slot(tile, rank()), product, where.elements() * kPartialBytes, arrived(tile),
                     1, static_cast<int>(job_.tiles.owner(tile)));
}

template <typename Calls>
bool FusedPass<Calls>::is_next_complete() const {
  const std::uint64_t others = ranks() - 1;
  return others == 0 || Calls::is_at_least(job_.workspace.arrived(next_group()), others * round_);
}

template <typename Calls>
void FusedPass<Calls>::wait_for_next() const {
  const std::uint64_t others = ranks() - 1;
  if (others != 0)
    Calls::wait_until_at_least(job_.workspace.arrived(next_group()), others * round_);
}

// A piece is summed, rounded and sent while it is in the nearest cache: one row of the tile, or,
// where rows of the tile are rows of the result, as much as kPieceElements.
template <typename Calls>
void FusedPass<Calls>::reduce_next() {
  const std::uint64_t n = job_.spec.shape.n;
  const std::uint64_t number = next_group() * ranks() + rank();
  Tile tile = job_.tiles.tile(number);
  bool has_full_rows = tile.columns == n;
  std::uint64_t each = has_full_rows ? std::min(tile.elements(), kPieceElements) : tile.columns;
  std::uint64_t apart = has_full_rows ? each : n;
  std::uint64_t pieces = (tile.elements() + each - 1) / each;
  for (std::uint64_t i = 0; i < pieces; ++i) {
    Piece piece{i * each, tile.row * n + tile.column + i * apart,
                std::min(each, tile.elements() - i * each), i + 1 == pieces, pieces == 1};
    add_slots(piece, number);
    send(piece, number);
  }
  ++reduced_;
}

template <typename Calls>
void FusedPass<Calls>::add_slots(const Piece& piece, std::uint64_t number) {
  const ElementType type = job_.spec.type;
  std::size_t offset = piece.in_slot * kPartialBytes;
  std::memcpy(sum_.data(), slot(number, 0) + offset, piece.count * kPartialBytes);
  for (std::uint64_t source = 1; source < ranks(); ++source)
    add_partials(type, slot(number, source) + offset, sum_.data(), piece.count);
  std::byte* result = job_.workspace.result(Form::kFused) + piece.in_result * element_bytes(type);
  finish_partials(type, sum_.data(), result, piece.count);
}

// The last piece carries the tile's signal; a fence keeps the others before it.
template <typename Calls>
void FusedPass<Calls>::send(const Piece& piece, std::uint64_t number) const {
  const std::size_t element = element_bytes(job_.spec.type);
  std::byte* from = job_.workspace.result(Form::kFused) + piece.in_result * element;
  std::size_t bytes = piece.count * element;
  if (piece.is_last && !piece.is_only) Calls::fence();
  for (int step = 1; step < job_.place.ranks; ++step) {
    int peer = (job_.place.rank + step) % job_.place.ranks;
    if (piece.is_last)
      Calls::put_and_set(from, from, bytes, job_.workspace.finished(job_.tiles, number), round_,
                         peer);
    else
      Calls::put(from, from, bytes, peer);
  }
}

}  // namespace matmul
