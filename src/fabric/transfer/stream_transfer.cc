// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/stream_transfer.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace memspan::transfer {
namespace {

constexpr Duration kFetchPatience = std::chrono::seconds(5);

}  // namespace

Status StreamTransfer::submit(const Pieces& pieces) {
  std::array<Piece, ResolvedPieces::kMost> places;
  ResolvedPieces resolved;
  for (std::uint64_t first = 0; first < pieces.count(); first += resolved.count) {
    const std::span<Piece> block(places.data(),
                                 std::min<std::uint64_t>(places.size(), pieces.count() - first));
    pieces.fill(first, block);
    MEMSPAN_PASS(resolve(block, first, resolved));
    Status status;
    for (std::size_t i = 0; i < resolved.count && status.is_ok(); ++i)
      status = submit_piece(block[i], resolved.link == nullptr ? resolved.mapped[i] : nullptr);
    // Mapped memory stays until the stream is done with it, also after a failure.
    if (resolved.held != nullptr) {
      const Status kept = stream_.device->keep(resolved.held, stream_.stream);
      if (status.is_ok()) status = kept;
    }
    MEMSPAN_PASS(status);
  }
  return Status::ok();
}

Status StreamTransfer::resolve(std::span<const Piece> block, std::uint64_t first,
                               ResolvedPieces& resolved) {
  while (true) {
    if (!peer_.is_open() && !peer_.is_live()) return peer_.why_not_live();
    peer_.resolve(block, resolved);
    if (resolved.is_refused && resolved.count < block.size())
      return peer_.refusal(block[resolved.count], first + resolved.count);
    if (!resolved.is_missing) return Status::ok();
    const Status fetched = peer_.fetch(resolved, Deadline::after(kFetchPatience));
    if (fetched.code() == Code::kNotFound)
      return peer_.refusal(block[resolved.count], first + resolved.count);
    MEMSPAN_PASS(fetched);
  }
}

Status StreamTransfer::submit_piece(const Piece& piece, std::byte* mapped) {
  Device& device = *stream_.device;
  const bool is_local = device.owns(piece.local);
  if (mapped != nullptr && (is_local || device.owns(mapped))) {
    const bool is_write = direction_ == Direction::kWrite;
    const std::array held{device.hold(piece.local), device.hold(mapped)};
    MEMSPAN_PASS(device.begin_copy(is_write ? mapped : piece.local, is_write ? piece.local : mapped,
                                   piece.bytes, stream_.stream));
    for (const auto& end : held)
      if (end != nullptr) MEMSPAN_PASS(device.keep(end, stream_.stream));
    return Status::ok();
  }
  if (!is_local)
    return device.begin_call([move = stream_.move, list = PieceList({piece})] { move(list); },
                             stream_.stream);
  auto held = device.hold(piece.local);  // also when it is freed before
  const auto move_part = [move = stream_.move, remote = piece.remote](
                             std::byte* part, std::size_t at, std::size_t bytes) {
    move(PieceList({Piece{part, remote + at, bytes}}));
  };
  MEMSPAN_PASS(direction_ == Direction::kWrite
                   ? device.begin_read(piece.local, piece.bytes, move_part, stream_.stream)
                   : device.begin_write(piece.local, piece.bytes, move_part, stream_.stream));
  return held == nullptr ? Status::ok() : device.keep(std::move(held), stream_.stream);
}

}  // namespace memspan::transfer
