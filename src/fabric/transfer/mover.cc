// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/mover.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "device/host/copy.h"

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

}  // namespace

Status Mover::move(Share share) {
  Status status;
  located_.wanted_slice = 0;
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
  const bool is_whole = share.bytes == UINT64_MAX && share.pieces == UINT64_MAX;
  std::size_t i = is_whole ? copy_mapped(block) : 0;
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
  return peer_.refusal(block[located_.count], cursor_.piece);
}

// Those at the beginning of the block that are mapped, and how many these are. A loop of nothing
// but copies: what else there was to do for each would keep the processor from beginning the next
// one while it waits for memory.
std::size_t Mover::copy_mapped(std::span<const Piece> block) {
  if (cursor_.offset != 0 || !vector_.is_empty()) return 0;
  std::size_t i = 0;
  for (; i < located_.count && located_.mapped[i] != nullptr; ++i) {
    if (i + kAhead < located_.count)
      prefetch(direction_, block[i + kAhead], located_.mapped[i + kAhead]);
    copy(direction_, block[i].local, located_.mapped[i], block[i].bytes);
  }
  cursor_ = flushed_ = {cursor_.piece + i, 0};
  return i;
}

Status Mover::move_piece(Piece piece, std::byte* mapped) {
  if (mapped != nullptr) {
    MEMSPAN_PASS(flush());
    copy(direction_, piece.local, mapped, piece.bytes);
    return Status::ok();
  }
  if (vector_.is_full()) MEMSPAN_PASS(flush());
  vector_.add(piece);
  return Status::ok();
}

Status Mover::flush() {
  if (vector_.is_empty()) return Status::ok();
  Status status = vector_.flush();
  if (status.is_ok()) {
    flushed_ = cursor_;
    return status;
  }
  cursor_ = flushed_ = advanced(pieces_, flushed_, vector_.moved());
  return status.annotate(
      fmt::format("piece {} of a transfer with endpoint {}", cursor_.piece, peer_.record().name));
}

}  // namespace memspan::transfer
