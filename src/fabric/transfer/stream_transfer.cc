// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/stream_transfer.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace memspan::transfer {
namespace {

constexpr Duration kFetchPatience = std::chrono::seconds(5);
// The size of one buffer. The parts of a larger piece pass through it one after the other.
constexpr std::size_t kBufferBytes = std::size_t{16} << 20;

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
  return is_local ? submit_staged(piece) : submit_move(piece, nullptr);
}

Status StreamTransfer::submit_staged(const Piece& piece) {
  const std::size_t room = std::min(kBufferBytes, piece.bytes);
  auto held = stream_.device->hold(piece.local);  // also when it is freed before
  // Shared by the calls that use it.
  MEMSPAN_TRY_ASSIGN(const std::shared_ptr<std::byte> buffer, stream_.device->staging(room),
                     "passing through the host");
  for (std::size_t at = 0; at < piece.bytes; at += room) {
    const Piece part{buffer.get(), piece.remote + at, std::min(room, piece.bytes - at)};
    std::byte* const local = piece.local + at;
    if (direction_ == Direction::kWrite)
      MEMSPAN_PASS(stream_.device->begin_copy(part.local, local, part.bytes, stream_.stream));
    MEMSPAN_PASS(submit_move(part, buffer));
    if (direction_ == Direction::kRead)
      MEMSPAN_PASS(stream_.device->begin_copy(local, part.local, part.bytes, stream_.stream));
  }
  if (held != nullptr) MEMSPAN_PASS(stream_.device->keep(std::move(held), stream_.stream));
  return stream_.device->begin_call([buffer] {}, stream_.stream);
}

Status StreamTransfer::submit_move(const Piece& piece, std::shared_ptr<std::byte> buffer) {
  auto list = std::make_shared<const PieceList>(std::vector<Piece>{piece});
  return stream_.device->begin_call(
      [move = stream_.move, list = std::move(list), held = std::move(buffer)] { move(*list); },
      stream_.stream);
}

}  // namespace memspan::transfer
