// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/copy_engine.h"

#include <cstring>
#include <tuple>

#include "device/host/copy.h"

namespace memspan::transfer {
namespace {

constexpr Duration kMappingPatience = std::chrono::seconds(5);

void copy(MeasuredCopy& copier, Direction direction, std::byte* local, std::byte* mapped,
          std::size_t bytes) {
  std::byte* const to = direction == Direction::kWrite ? mapped : local;
  const std::byte* const from = direction == Direction::kWrite ? local : mapped;
  // Within one process a program may move bytes by less than their number.
  if (to < from + bytes && from < to + bytes)
    std::memmove(to, from, bytes);
  else
    copier(to, from, bytes);
}

// How many pieces ahead are prefetched.
constexpr std::size_t kAhead = 4;

void prefetch(const MeasuredCopy& copier, Direction direction, const Piece& piece,
              const std::byte* mapped) {
  const bool is_write = direction == Direction::kWrite;
  const std::byte* const to = is_write ? mapped : piece.local;
  prefetch_copy(copier.is_past_caches() ? nullptr : to, is_write ? piece.local : mapped,
                piece.bytes);
}

// Copies pieces that are mapped. The loop does nothing but copies, because other work for each
// piece would keep the processor from beginning the next one while it waits for memory.
struct MappedPieces {
  MeasuredCopy& copier;
  const Direction direction;
  const Piece* const pieces;
  std::byte* const* const mapped;
  const std::size_t count;
  volatile std::size_t done = 0;  // read after a fault

  void operator()() {
    const auto [way, row, places, end] = std::tuple(direction, pieces, mapped, count);
    for (std::size_t i = 0; i < end; ++i) {
      if (i + kAhead < end) prefetch(copier, way, row[i + kAhead], places[i + kAhead]);
      copy(copier, way, row[i].local, places[i], row[i].bytes);
      done = i + 1;
    }
  }
};

}  // namespace

std::optional<CopyFault> copy_mapped(Direction direction, const Piece& piece, std::byte* mapped) {
  // Not the rule for pieces: copy_bytes() measures large ones.
  MeasuredCopy copier(0, MeasuredCopy::Shape::kWhole);
  MappedPieces row{copier, direction, &piece, &mapped, 1};
  return run_guarded(row);
}

Status CopyEngine::move(Quantum quantum) {
  Status status;
  resolved_.is_missing = false;
  is_refused_ = false;
  while (status.is_ok() && !is_done() && !quantum.is_used_up() && !resolved_.is_missing)
    status = move_block(quantum);
  const Cursor reached = cursor_;
  // The pieces of a flush come before the one that move_block() failed at.
  if (Status flushed = flush(); !flushed.is_ok())
    status = std::move(flushed);
  else
    cursor_ = reached;
  if (std::exchange(is_stale_, false)) {
    // Memory that was registered again since then is another region.
    peer_.forget_extents();
    resolved_.is_missing = true;
    resolved_.wanted_pieces.clear();
    return Status::ok();
  }
  MEMSPAN_PASS(status);
  // A peer that ended during the move has not got all of it.
  return peer_.check();
}

Status CopyEngine::move_all() {
  while (true) {
    MEMSPAN_PASS(move({}));
    if (!is_missing()) return Status::ok();
    MEMSPAN_PASS(fetch());
  }
}

Status CopyEngine::fetch() {
  Status status = peer_.fetch(resolved_, Deadline::after(kMappingPatience));
  if (status.code() != Code::kNotFound || resolved_.link == nullptr) return status;
  MEMSPAN_PASS(peer_.why_not_live());
  is_refused_ = true;
  return peer_.refusal(pieces_.at(cursor_.piece), cursor_.piece);
}

Status CopyEngine::move_block(Quantum& quantum) {
  // The peer may be destroyed at any time; from then on nothing of it is touched.
  MEMSPAN_PASS(peer_.check());
  const std::span<Piece> block(
      block_.data(), std::min<std::uint64_t>(block_.size(), pieces_.count() - cursor_.piece));
  pieces_.fill(cursor_.piece, block);
  peer_.resolve(block, resolved_);
  std::size_t i = 0;
  if (cursor_.offset == 0 && !has_pending() && resolved_.link == nullptr && device_ == nullptr)
    MEMSPAN_PASS(move_row(block, quantum, i));
  for (; i < resolved_.count && !quantum.is_used_up(); ++i) {
    const std::uint64_t left = block[i].bytes - cursor_.offset;
    const std::uint64_t bytes = std::min(left, quantum.bytes);
    const Piece piece{block[i].local + cursor_.offset, block[i].remote + cursor_.offset, bytes};
    std::byte* const mapped = resolved_.mapped[i];
    MEMSPAN_PASS(move_piece(piece, i));
    quantum.bytes -= bytes;
    --quantum.pieces;
    cursor_ =
        bytes < left ? Cursor{cursor_.piece, cursor_.offset + bytes} : Cursor{cursor_.piece + 1, 0};
    if (mapped != nullptr) flushed_ = cursor_;
  }
  if (quantum.is_used_up() || !resolved_.is_refused) return Status::ok();
  is_refused_ = true;
  return peer_.refusal(block[resolved_.count], cursor_.piece);
}

// Moves the first pieces, as far as they are mapped and in the quantum. `moved`: how many.
Status CopyEngine::move_row(std::span<const Piece> block, Quantum& quantum, std::size_t& moved) {
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  while (count < resolved_.count && resolved_.mapped[count] != nullptr && count < quantum.pieces &&
         block[count].bytes <= quantum.bytes - bytes)
    bytes += block[count++].bytes;
  if (count == 0) return Status::ok();
  MeasuredCopy copier(count > 1 ? bytes : 0, MeasuredCopy::Shape::kPieces);
  MappedPieces row{copier, direction_, block.data(), resolved_.mapped.data(), count};
  const auto fault = run_guarded(row);
  moved = row.done;
  cursor_ = flushed_ = {cursor_.piece + moved, 0};
  if (fault) [[unlikely]]
    return explain(*fault, block[moved], resolved_.mapped[moved]);
  quantum.bytes -= bytes;
  quantum.pieces -= count;
  return Status::ok();
}

Status CopyEngine::move_piece(Piece piece, std::size_t index) {
  std::byte* const mapped = resolved_.link == nullptr ? resolved_.mapped[index] : nullptr;
  if (mapped != nullptr) {
    std::byte* const place = mapped + cursor_.offset;
    MEMSPAN_PASS(flush());
    if (device_ != nullptr && (device_->owns(piece.local) || device_->owns(place)))
      return move_by_device(piece, place);
    const auto fault = copy_mapped(direction_, piece, place);
    return fault ? explain(*fault, piece, place) : Status::ok();
  }
  if (device_ != nullptr && device_->owns(piece.local)) return move_staged(piece, index);
  if (resolved_.link != nullptr) return add_remote(piece, *resolved_.extents[index]);
  if (vector_.is_full()) MEMSPAN_PASS(flush());
  vector_.add(piece.local, piece.remote, piece.bytes);
  return Status::ok();
}

// The driver must not get host addresses without memory.
Status CopyEngine::move_by_device(const Piece& piece, std::byte* mapped) {
  const bool is_write = direction_ == Direction::kWrite;
  std::byte* const from = is_write ? piece.local : mapped;
  std::byte* const to = is_write ? mapped : piece.local;
  const std::array held{device_->hold(from), device_->hold(to)};  // the program may free it
  std::optional<CopyFault> fault;
  if (!device_->owns(from)) fault = find_fault(from, piece.bytes, MemoryAccess::kRead);
  if (!fault && !device_->owns(to)) fault = find_fault(to, piece.bytes, MemoryAccess::kWrite);
  return fault ? explain(*fault, piece, mapped) : name_piece(device_->copy(to, from, piece.bytes));
}

// The local end is memory of the device, and the kernel or a link reaches the other one. The bytes
// pass through a buffer that both can use.
Status CopyEngine::move_staged(const Piece& piece, std::size_t index) {
  constexpr std::size_t kRoom = std::size_t{1} << 20;
  MEMSPAN_PASS(flush());
  const auto held = device_->hold(piece.local);  // the program may free it
  const std::size_t room = std::min(kRoom, piece.bytes);
  const auto buffer = std::make_unique<std::byte[]>(room);
  for (std::size_t at = 0; at < piece.bytes; at += room) {
    const Piece part{buffer.get(), piece.remote + at, std::min(room, piece.bytes - at)};
    std::byte* const local = piece.local + at;
    if (direction_ == Direction::kWrite)
      MEMSPAN_PASS(name_piece(device_->copy(part.local, local, part.bytes)));
    if (resolved_.link != nullptr)
      MEMSPAN_PASS(add_remote(part, *resolved_.extents[index]));
    else
      vector_.add(part.local, part.remote, part.bytes);
    MEMSPAN_PASS(flush());
    if (direction_ == Direction::kRead)
      MEMSPAN_PASS(name_piece(device_->copy(local, part.local, part.bytes)));
  }
  return Status::ok();
}

// Explains a fault in the piece at the cursor.
Status CopyEngine::explain(const CopyFault& fault, const Piece& piece,
                           const std::byte* mapped) const {
  if (fault.is_in(mapped, piece.bytes))
    return name_piece(
        {Code::kStale, fmt::format("the memory at {:#x} of the peer {}", piece.remote,
                                   fault.is_forbidden ? "may not be written" : "is gone")});
  const void* const address = fault.is_in(piece.local, piece.bytes)
                                  ? reinterpret_cast<const void*>(fault.address)
                                  : piece.local;
  return name_piece({Code::kInvalidArgument,
                     fault.is_forbidden
                         ? fmt::format("the memory at {} of this process may not be {}", address,
                                       direction_ == Direction::kWrite ? "read" : "written")
                         : fmt::format("there is no memory at {} of this process", address)});
}

Status CopyEngine::name_piece(const Status& status) const {
  return status.annotate(
      fmt::format("piece {} of a transfer with endpoint {}", cursor_.piece, peer_.record().name));
}

Status CopyEngine::add_remote(const Piece& piece, const RegionExtent& extent) {
  constexpr std::size_t kMostPieces = 1024;
  constexpr Duration kLimit = std::chrono::seconds(30);  // for one flush
  if (remote_ == nullptr) {
    remote_ = std::make_unique<RemoteMoves>();
    remote_->context.set_limit(kLimit);
  }
  if (!vector_.is_empty() || remote_->held != resolved_.held_extents ||
      remote_->pieces.size() == kMostPieces)
    MEMSPAN_PASS(flush());
  const bool is_write = direction_ == Direction::kWrite;
  if (const auto fault = find_fault(piece.local, piece.bytes,
                                    is_write ? MemoryAccess::kRead : MemoryAccess::kWrite))
    return explain(*fault, piece, nullptr);
  remote_->link = resolved_.link;
  remote_->held = resolved_.held_extents;
  remote_->pieces.push_back({piece.local, &extent.region, piece.remote - extent.base, piece.bytes});
  return Status::ok();
}

// A peer that is gone is named, and how it ended; else the piece at which the copy failed.
Status CopyEngine::name_loss(const Status& status) {
  if (status.code() == Code::kPeerLost) {
    peer_.note_lost();
    MEMSPAN_PASS(peer_.why_not_live());
  }
  return name_piece(status);
}

Status CopyEngine::flush() {
  constexpr int kMostStale = 100;
  if (!has_pending()) return Status::ok();
  const bool is_remote = remote_ != nullptr && !remote_->pieces.empty();
  Status status;
  if (is_remote) {
    status = remote_->link->move(remote_->context, move_direction(direction_), remote_->pieces);
    if (const Status settled = remote_->context.quiet(); status.is_ok()) status = settled;
    remote_->pieces.clear();
  } else {
    status = vector_.flush();
  }
  if (status.is_ok()) {
    flushed_ = cursor_;
    return status;
  }
  // None of the pieces of a link counts as moved.
  if (!is_remote) flushed_ = advanced(pieces_, flushed_, vector_.moved());
  cursor_ = flushed_;
  if (is_remote && status.code() == Code::kStale) is_stale_ = ++remote_->stale_count < kMostStale;
  if (!is_remote && (status.code() == Code::kAuth || status.code() == Code::kNotSupported))
    is_stale_ = peer_.use_link(status);
  return name_loss(status);
}

namespace {

Status resolve_all(Peer& peer, std::span<const Piece> block, std::uint64_t first,
                   ResolvedPieces& resolved) {
  while (true) {
    MEMSPAN_PASS(peer.check());
    peer.resolve(block, resolved);
    if (resolved.is_refused && resolved.count < block.size())
      return peer.refusal(block[resolved.count], first + resolved.count);
    if (!resolved.is_missing) return Status::ok();
    const Status fetched = peer.fetch(resolved, Deadline::after(kMappingPatience));
    if (fetched.code() == Code::kNotFound)
      return peer.refusal(block[resolved.count], first + resolved.count);
    MEMSPAN_PASS(fetched);
  }
}

Status submit_piece(Direction direction, const DeviceStream& stream, const Piece& piece,
                    std::byte* mapped) {
  Device& device = *stream.device;
  const bool is_local = device.owns(piece.local);
  if (mapped != nullptr && (is_local || device.owns(mapped))) {
    const bool is_write = direction == Direction::kWrite;
    const std::array held{device.hold(piece.local), device.hold(mapped)};
    MEMSPAN_PASS(device.begin_copy(is_write ? mapped : piece.local, is_write ? piece.local : mapped,
                                   piece.bytes, stream.stream));
    for (const auto& end : held)
      if (end != nullptr) MEMSPAN_PASS(device.keep(end, stream.stream));
    return Status::ok();
  }
  if (!is_local)
    return device.begin_call([move = stream.move, list = PieceList({piece})] { move(list); },
                             stream.stream);
  auto held = device.hold(piece.local);  // also when it is freed before
  const auto move_part = [move = stream.move, remote = piece.remote](
                             std::byte* part, std::size_t at, std::size_t bytes) {
    move(PieceList({Piece{part, remote + at, bytes}}));
  };
  const auto how = direction == Direction::kWrite ? Device::Parts::kRead : Device::Parts::kWrite;
  MEMSPAN_PASS(device.begin_parts(how, piece.local, piece.bytes, move_part, stream.stream));
  return held == nullptr ? Status::ok() : device.keep(std::move(held), stream.stream);
}

}  // namespace

Status submit_to_stream(Peer& peer, Direction direction, const Pieces& pieces,
                        const DeviceStream& stream) {
  std::array<Piece, ResolvedPieces::kMost> places;
  ResolvedPieces resolved;
  for (std::uint64_t first = 0; first < pieces.count(); first += resolved.count) {
    const std::span<Piece> block(places.data(),
                                 std::min<std::uint64_t>(places.size(), pieces.count() - first));
    pieces.fill(first, block);
    MEMSPAN_PASS(resolve_all(peer, block, first, resolved));
    Status status;
    for (std::size_t i = 0; i < resolved.count && status.is_ok(); ++i)
      status = submit_piece(direction, stream, block[i],
                            resolved.link == nullptr ? resolved.mapped[i] : nullptr);
    // Mapped memory stays until the stream is done with it, also after a failure.
    if (resolved.held != nullptr) {
      const Status kept = stream.device->keep(resolved.held, stream.stream);
      if (status.is_ok()) status = kept;
    }
    MEMSPAN_PASS(status);
  }
  return Status::ok();
}

}  // namespace memspan::transfer
