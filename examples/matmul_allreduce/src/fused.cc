// SPDX-License-Identifier: Apache-2.0
#include "fused.h"

#include <shmem.h>

#include <algorithm>
#include <cstring>

#include "convert.h"

namespace matmul {
namespace {

// A sum and what is added to it stay in the first-level cache. No row of a tile is longer.
constexpr std::uint64_t kPieceElements = 4096;
static_assert(kPieceElements >= kMostTileColumns);

}  // namespace

FusedAllreduce::FusedAllreduce(const JobSpec& spec, const Place& place, const TilePlan& tiles,
                               Gemm& gemm, Workspace& workspace, Send send)
    : spec_(spec),
      place_(place),
      tiles_(tiles),
      gemm_(gemm),
      workspace_(workspace),
      send_(send),
      sum_(kPieceElements * kPartialBytes) {
  if (place.ranks == 1) return;
  for (Pages& buffer : in_flight_) buffer = Pages(tiles.slot_elements() * kPartialBytes);
}

void FusedAllreduce::run() {
  auto me = static_cast<std::uint64_t>(place_.rank);
  ++round_;
  computed_ = reduced_ = 0;
  for (std::uint64_t tile = 0; tile < tiles_.tiles(); ++tile) {
    compute(tile);
    while (reduced_ < computed_ && is_next_complete()) reduce_next();
  }
  while (reduced_ < computed_) {
    wait_for_next();
    reduce_next();
  }
  for (std::uint64_t tile = 0; tile < tiles_.tiles(); ++tile)
    if (tiles_.owner(tile) != me)
      shmem_signal_wait_until(workspace_.finished(tiles_, tile), SHMEM_CMP_GE, round_);
  shmem_quiet();
}

std::byte* FusedAllreduce::slot(std::uint64_t tile, std::uint64_t source) const {
  return workspace_.partials() + tiles_.slot(tile, source) * tiles_.slot_elements() * kPartialBytes;
}

std::uint64_t* FusedAllreduce::arrived(std::uint64_t tile) const {
  return workspace_.arrived(tile / static_cast<std::uint64_t>(place_.ranks));
}

void FusedAllreduce::compute(std::uint64_t tile) {
  auto me = static_cast<std::uint64_t>(place_.rank);
  if (tiles_.owner(tile) == me) return compute_own(tile);
  void* there = send_ == Send::kPut
                    ? nullptr
                    : shmem_ptr(slot(tile, me), static_cast<int>(tiles_.owner(tile)));
  there != nullptr ? compute_there(tile, there) : compute_and_put(tile);
}

void FusedAllreduce::compute_own(std::uint64_t tile) {
  Tile where = tiles_.tile(tile);
  gemm_.multiply(where, slot(tile, tiles_.owner(tile)), where.columns);
  ++computed_;
}

void FusedAllreduce::compute_there(std::uint64_t tile, void* there) {
  Tile where = tiles_.tile(tile);
  gemm_.multiply(where, there, where.columns);
  shmem_fence();
  shmem_signal_add(arrived(tile), 1, static_cast<int>(tiles_.owner(tile)));
}

void FusedAllreduce::compute_and_put(std::uint64_t tile) {
  Tile where = tiles_.tile(tile);
  void* product = in_flight_[next_buffer_].data();
  next_buffer_ = 1 - next_buffer_;
  gemm_.multiply(where, product, where.columns);
  // The product before this one had a whole tile's time to travel: its buffer is free after this.
  shmem_quiet();
  shmem_putmem_signal_nbi(slot(tile, static_cast<std::uint64_t>(place_.rank)), product,
                          where.elements() * kPartialBytes, arrived(tile), 1, SHMEM_SIGNAL_ADD,
                          static_cast<int>(tiles_.owner(tile)));
}

bool FusedAllreduce::is_next_complete() const {
  auto others = static_cast<std::uint64_t>(place_.ranks) - 1;
  return others == 0 || shmem_signal_fetch(workspace_.arrived(reduced_)) >= others * round_;
}

void FusedAllreduce::wait_for_next() const {
  auto others = static_cast<std::uint64_t>(place_.ranks) - 1;
  if (others != 0)
    shmem_signal_wait_until(workspace_.arrived(reduced_), SHMEM_CMP_GE, others * round_);
}

// A piece is summed, rounded and sent while it is in the nearest cache: one row of the tile, or,
// where rows of the tile are rows of the result, as much as kPieceElements.
void FusedAllreduce::reduce_next() {
  std::uint64_t number =
      reduced_ * static_cast<std::uint64_t>(place_.ranks) + static_cast<std::uint64_t>(place_.rank);
  Tile tile = tiles_.tile(number);
  bool has_full_rows = tile.columns == spec_.shape.n;
  std::uint64_t each = has_full_rows ? std::min(tile.elements(), kPieceElements) : tile.columns;
  std::uint64_t apart = has_full_rows ? each : spec_.shape.n;
  std::uint64_t pieces = (tile.elements() + each - 1) / each;
  for (std::uint64_t i = 0; i < pieces; ++i) {
    Piece piece{i * each, tile.row * spec_.shape.n + tile.column + i * apart,
                std::min(each, tile.elements() - i * each), i + 1 == pieces, pieces == 1};
    add_slots(piece, number);
    send(piece, number);
  }
  ++reduced_;
}

void FusedAllreduce::add_slots(const Piece& piece, std::uint64_t number) {
  std::size_t offset = piece.in_slot * kPartialBytes;
  std::memcpy(sum_.data(), slot(number, 0) + offset, piece.count * kPartialBytes);
  for (std::uint64_t source = 1; source < static_cast<std::uint64_t>(place_.ranks); ++source)
    add_partials(spec_.type, slot(number, source) + offset, sum_.data(), piece.count);
  std::byte* result = workspace_.result(Form::kFused) + piece.in_result * element_bytes(spec_.type);
  finish_partials(spec_.type, sum_.data(), result, piece.count);
}

// The last piece carries the tile's signal; a fence keeps the others before it.
void FusedAllreduce::send(const Piece& piece, std::uint64_t number) const {
  std::byte* from = workspace_.result(Form::kFused) + piece.in_result * element_bytes(spec_.type);
  std::size_t bytes = piece.count * element_bytes(spec_.type);
  if (piece.is_last && !piece.is_only) shmem_fence();
  for (int step = 1; step < place_.ranks; ++step) {
    int peer = (place_.rank + step) % place_.ranks;
    if (piece.is_last)
      shmem_putmem_signal_nbi(from, from, bytes, workspace_.finished(tiles_, number), round_,
                              SHMEM_SIGNAL_SET, peer);
    else
      shmem_putmem_nbi(from, from, bytes, peer);
  }
}

}  // namespace matmul
