// SPDX-License-Identifier: Apache-2.0
// Moves pieces to or from a peer: by the processor if its memory is mapped here, by the kernel if
// it is another process of this host and the kernel allows it, else by a link.
#pragma once

#include "device/host/guarded_copy.h"
#include "fabric/transfer/peers.h"
#include "transport/cma/vector_copy.h"

namespace memspan::transfer {

// How much to move at a time. A value.
struct Quantum {
  std::uint64_t bytes = UINT64_MAX;
  std::uint64_t pieces = UINT64_MAX;
  bool is_used_up() const { return bytes == 0 || pieces == 0; }
};

inline MoveDirection move_direction(Direction direction) {
  return direction == Direction::kWrite ? MoveDirection::kPut : MoveDirection::kGet;
}

// Copies to or from the remote end, which is mapped here.
std::optional<CopyFault> copy_mapped(Direction direction, const Piece& piece, std::byte* mapped);

// The pieces that a link moves with the next flush.
struct RemoteMoves {
  OperationContext context;
  std::vector<MovePiece> pieces;
  std::shared_ptr<Link> link;
  std::shared_ptr<const KnownExtents> held;  // whose regions they name
  int stale_count = 0;                       // how often one of them was
};

// One transfer's. Lives on the stack (40 KiB); one thread.
class CopyEngine {
 public:
  // `device`: not the host; its memory may be an end; null: no end is device memory.
  CopyEngine(Peer& peer, Direction direction, const Pieces& pieces, Cursor from, Device* device)
      : peer_(peer),
        device_(device),
        direction_(direction),
        pieces_(pieces),
        cursor_(from),
        flushed_(from),
        vector_(peer.process(), move_direction(direction)) {}

  // Moves at most so much. Checks each piece against the registrations when it reaches it.
  // Afterwards neither end is touched any more. kNotFound: a piece is not registered, and those
  // before it were moved.
  Status move(Quantum quantum);
  // Moves everything, and fetches what is missing. Touches neither end during a fetch.
  Status move_all();
  // Whether move() has come to memory that must be fetched before it is called again.
  bool is_missing() const { return resolved_.is_missing; }
  // Fetches it: an allocation to be mapped, a link or its regions. As move(): kNotFound.
  Status fetch();
  // Whether move() has failed because the peer has not registered a piece. It may be called again.
  bool is_refused() const { return is_refused_; }
  // The next piece, or the one that failed.
  const Cursor& cursor() const { return cursor_; }
  bool is_done() const { return cursor_.piece >= pieces_.count(); }

 private:
  bool has_pending() const {
    return !vector_.is_empty() || (remote_ != nullptr && !remote_->pieces.empty());
  }
  Status move_block(Quantum& quantum);
  Status move_row(std::span<const Piece> block, Quantum& quantum, std::size_t& moved);
  Status move_piece(Piece piece, std::size_t index);
  [[gnu::cold]] Status move_by_device(const Piece& piece, std::byte* mapped);
  [[gnu::cold]] Status move_staged(const Piece& piece, std::size_t index);
  [[gnu::cold]] Status explain(const CopyFault& fault, const Piece& piece,
                               const std::byte* mapped) const;
  Status name_piece(const Status& status) const;
  Status name_loss(const Status& status);
  Status flush();
  Status add_remote(const Piece& piece, const RegionExtent& extent);

  Peer& peer_;
  Device* const device_;
  const Direction direction_;
  const Pieces& pieces_;
  Cursor cursor_;
  Cursor flushed_;  // where what the vector holds begins
  VectorCopy vector_;
  ResolvedPieces resolved_;
  bool is_refused_ = false;
  // The last flush failed: a region was stale, or a link begins to move what the kernel refused.
  bool is_stale_ = false;
  std::unique_ptr<RemoteMoves> remote_;  // once there was a piece for a link
  std::array<Piece, ResolvedPieces::kMost> block_;
};

// A transfer as work of a device's own stream (a cudaStream_t), piece by piece in its order:
//
//   one end is device memory, both are mapped here    one copy of the stream
//   the local end is, the other one is not mapped     the device's copies in parts, and calls that
//                                                     move each part
//   no end is device memory                           a call that moves it
//
// A thread of the driver makes the calls. It may not use the device in them, so they move memory of
// the host.

// The stream that gets the work. A value.
struct DeviceStream {
  Device* device = nullptr;
  void* stream = nullptr;
  // Moves memory of the host, and reports a failure. Called when the stream reaches it, perhaps
  // after the endpoint's end.
  std::function<void(const PieceList&)> move;
};

// Submits a transfer. Memory that the peer has not registered, or that cannot be opened here, is
// refused at once, and then no piece of its block is submitted. Local memory must stay until the
// stream has used it.
Status submit_to_stream(Peer& peer, Direction direction, const Pieces& pieces,
                        const DeviceStream& stream);

}  // namespace memspan::transfer
