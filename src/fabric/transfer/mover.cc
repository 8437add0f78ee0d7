// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/mover.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "device/host/copy.h"
#include "device/host/guarded_copy.h"

namespace memspan::transfer {
namespace {

constexpr Duration kMappingPatience = std::chrono::seconds(5);

void copy(Direction direction, std::byte* local, std::byte* mapped, std::size_t bytes) {
  std::byte* const to = direction == Direction::kWrite ? mapped : local;
  const std::byte* const from = direction == Direction::kWrite ? local : mapped;
  // Within one process a program may move bytes by less than their number.
  if (to < from + bytes && from < to + bytes)
    std::memmove(to, from, bytes);
  else
    copy_bytes(to, from, bytes);
}

// So many pieces ahead the caches are told what will come.
constexpr std::size_t kAhead = 4;

void prefetch(Direction direction, const Piece& piece, const std::byte* mapped) {
  if (mapped == nullptr) return;
  if (direction == Direction::kWrite)
    prefetch_copy(mapped, piece.local, piece.bytes);
  else
    prefetch_copy(piece.local, mapped, piece.bytes);
}

// Pieces from the first to the last that is mapped, copied one after the other. A loop of nothing
// but copies: what else there was to do for each would keep the processor from beginning the next
// one while it waits for memory.
struct MappedPieces {
  const Direction direction;
  const Piece* const pieces;
  std::byte* const* const mapped;
  const std::size_t count;
  volatile std::size_t done = 0;  // read after a fault

  void operator()() {
    const auto [way, row, places, end] = std::tuple(direction, pieces, mapped, count);
    for (std::size_t i = 0; i < end && places[i] != nullptr; ++i) {
      if (i + kAhead < end) prefetch(way, row[i + kAhead], places[i + kAhead]);
      copy(way, row[i].local, places[i], row[i].bytes);
      done = i + 1;
    }
  }
};

}  // namespace

Status Mover::move(Share share) {
  Status status;
  located_.wanted_slice = 0;
  is_refused_ = false;
  while (status.is_ok() && !is_done() && !share.is_used_up() && located_.wanted_slice == 0)
    status = move_block(share);
  const Cursor reached = cursor_;
  Status flushed = flush();
  // The vector's pieces come before the one that move_block() failed at.
  if (!flushed.is_ok()) return flushed;
  cursor_ = reached;
  MEMSPAN_PASS(status);
  // What ended meanwhile has not got all of it.
  return check_peer();
}

Status Mover::move_all() {
  while (true) {
    MEMSPAN_PASS(move({}));
    if (wanted_slice() == 0) return Status::ok();
    MEMSPAN_PASS(peer_.map_slice(wanted_slice(), Deadline::after(kMappingPatience)));
  }
}

// The peer may be destroyed at any time; from then on nothing of it is touched.
Status Mover::check_peer() {
  if (peer_.is_open() || peer_.is_live()) return Status::ok();
  return peer_.why_not_live();
}

Status Mover::move_block(Share& share) {
  MEMSPAN_PASS(check_peer());
  const std::span<Piece> block(
      block_.data(), std::min<std::uint64_t>(block_.size(), pieces_.count() - cursor_.piece));
  pieces_.fill(cursor_.piece, block);
  peer_.locate(block, located_);
  std::size_t i = 0;
  if (share.is_everything() && cursor_.offset == 0 && vector_.is_empty()) {
    MappedPieces row{direction_, block.data(), located_.mapped.data(), located_.count};
    const auto fault = run_guarded(row);
    i = row.done;
    cursor_ = flushed_ = {cursor_.piece + i, 0};
    if (fault) [[unlikely]]
      return explain(*fault, block[i], located_.mapped[i]);
  }
  for (; i < located_.count && !share.is_used_up(); ++i) {
    const std::uint64_t left = block[i].bytes - cursor_.offset;
    const std::uint64_t bytes = std::min(left, share.bytes);
    const Piece piece{block[i].local + cursor_.offset, block[i].remote + cursor_.offset, bytes};
    std::byte* const mapped = located_.mapped[i];
    MEMSPAN_PASS(move_piece(piece, mapped == nullptr ? nullptr : mapped + cursor_.offset));
    share.bytes -= bytes;
    --share.pieces;
    cursor_ =
        bytes < left ? Cursor{cursor_.piece, cursor_.offset + bytes} : Cursor{cursor_.piece + 1, 0};
    if (mapped != nullptr) flushed_ = cursor_;
  }
  if (share.is_used_up() || !located_.is_refused) return Status::ok();
  is_refused_ = true;
  return peer_.refusal(block[located_.count], cursor_.piece);
}

Status Mover::move_piece(Piece piece, std::byte* mapped) {
  if (mapped != nullptr) {
    MEMSPAN_PASS(flush());
    MappedPieces row{direction_, &piece, &mapped, 1};
    const auto fault = run_guarded(row);
    return fault ? explain(*fault, piece, mapped) : Status::ok();
  }
  if (vector_.is_full()) MEMSPAN_PASS(flush());
  vector_.add(piece);
  return Status::ok();
}

// Of the piece at the cursor.
Status Mover::explain(const CopyFault& fault, const Piece& piece, const std::byte* mapped) const {
  if (fault.is_in(mapped, piece.bytes))
    return name_piece({Code::kStale, fmt::format("the memory at {:#x} of the peer is not there any "
                                                 "more",
                                                 piece.remote)});
  const void* const address = fault.is_in(piece.local, piece.bytes)
                                  ? reinterpret_cast<const void*>(fault.address)
                                  : piece.local;
  return name_piece({Code::kInvalidArgument,
                     fault.is_forbidden
                         ? fmt::format("the memory at {} of this process may not be {}", address,
                                       direction_ == Direction::kWrite ? "read" : "written")
                         : fmt::format("there is no memory at {} of this process", address)});
}

Status Mover::name_piece(const Status& status) const {
  return status.annotate(
      fmt::format("piece {} of a transfer with endpoint {}", cursor_.piece, peer_.record().name));
}

Status Mover::flush() {
  if (vector_.is_empty()) return Status::ok();
  Status status = vector_.flush();
  if (status.is_ok()) {
    flushed_ = cursor_;
    return status;
  }
  cursor_ = flushed_ = advanced(pieces_, flushed_, vector_.moved());
  return name_piece(status);
}

}  // namespace memspan::transfer
