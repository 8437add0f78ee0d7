// SPDX-License-Identifier: Apache-2.0
#include "fused.h"

#include <shmem.h>

#include "convert.h"

namespace matmul {

FusedAllreduce::FusedAllreduce(const JobSpec& spec, const Place& place, const TilePlan& tiles,
                               Gemm& gemm, Workspace& workspace)
    : spec_(spec), place_(place), tiles_(tiles), gemm_(gemm), workspace_(workspace) {
  if (place.ranks == 1) return;
  for (Pages& buffer : in_flight_) buffer = Pages(tiles.slot_elements() * kPartialBytes);
}

void FusedAllreduce::run() {
  auto me = static_cast<std::uint64_t>(place_.rank);
  ++round_;
  computed_ = reduced_ = 0;
  for (std::uint64_t tile = 0; tile < tiles_.tiles(); ++tile) {
    tiles_.owner(tile) == me ? compute_own(tile) : compute_and_send(tile);
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

void FusedAllreduce::compute_own(std::uint64_t tile) {
  Tile where = tiles_.tile(tile);
  gemm_.multiply(where, slot(tile, tiles_.owner(tile)), where.columns);
  ++computed_;
}

void FusedAllreduce::compute_and_send(std::uint64_t tile) {
  Tile where = tiles_.tile(tile);
  void* product = in_flight_[next_buffer_].data();
  next_buffer_ = 1 - next_buffer_;
  gemm_.multiply(where, product, where.columns);
  // The product before this one had a whole tile's time to travel: its buffer is free after this.
  shmem_quiet();
  shmem_putmem_signal_nbi(slot(tile, static_cast<std::uint64_t>(place_.rank)), product,
                          where.elements() * kPartialBytes,
                          workspace_.arrived(tile / static_cast<std::uint64_t>(place_.ranks)), 1,
                          SHMEM_SIGNAL_ADD, static_cast<int>(tiles_.owner(tile)));
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

void FusedAllreduce::reduce_next() {
  std::uint64_t number =
      reduced_ * static_cast<std::uint64_t>(place_.ranks) + static_cast<std::uint64_t>(place_.rank);
  Tile tile = tiles_.tile(number);
  add_slots(tile, number);
  send_result(tile, number);
  ++reduced_;
}

// Row by row: the running sum, in the first slot, stays in the nearest cache.
void FusedAllreduce::add_slots(const Tile& tile, std::uint64_t number) {
  std::size_t bytes = element_bytes(spec_.type);
  for (std::uint64_t row = 0; row < tile.rows; ++row) {
    std::size_t offset = row * tile.columns * kPartialBytes;
    std::byte* sum = slot(number, 0) + offset;
    for (std::uint64_t source = 1; source < static_cast<std::uint64_t>(place_.ranks); ++source)
      add_partials(spec_.type, slot(number, source) + offset, sum, tile.columns);
    std::size_t first = (tile.row + row) * spec_.shape.n + tile.column;
    finish_partials(spec_.type, sum, workspace_.result(Form::kFused) + first * bytes, tile.columns);
  }
}

// The tile's rows lie apart in the result: all but the last are plain puts, and a fence keeps
// them before the last, which carries the signal. Full rows are one put.
void FusedAllreduce::send_result(const Tile& tile, std::uint64_t number) const {
  std::size_t stride = spec_.shape.n * element_bytes(spec_.type);
  std::size_t row_bytes = tile.columns * element_bytes(spec_.type);
  std::byte* first =
      workspace_.result(Form::kFused) + tile.row * stride + tile.column * element_bytes(spec_.type);
  bool is_one_piece = tile.columns == spec_.shape.n;
  for (int step = 1; step < place_.ranks; ++step) {
    int peer = (place_.rank + step) % place_.ranks;
    std::byte* last = first;
    if (!is_one_piece)
      for (std::uint64_t row = 0; row + 1 < tile.rows; ++row, last += stride)
        shmem_putmem_nbi(last, last, row_bytes, peer);
    if (last != first) shmem_fence();
    shmem_putmem_signal_nbi(last, last, is_one_piece ? row_bytes * tile.rows : row_bytes,
                            workspace_.finished(tiles_, number), round_, SHMEM_SIGNAL_SET, peer);
  }
}

}  // namespace matmul
