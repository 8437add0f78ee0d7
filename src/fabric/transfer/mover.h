// SPDX-License-Identifier: Apache-2.0
// Moving pieces to or from a peer: by the processor where its memory is mapped here, else by the
// kernel.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/status.h"
#include "device/host/guarded_copy.h"
#include "fabric/transfer/peer.h"
#include "fabric/transfer/pieces.h"
#include "fabric/transfer/vector_copy.h"

namespace memspan::transfer {

// How much to move at a time. A value.
struct Share {
  std::uint64_t bytes = UINT64_MAX;
  std::uint64_t pieces = UINT64_MAX;
  bool is_used_up() const { return bytes == 0 || pieces == 0; }
  bool is_everything() const { return bytes == UINT64_MAX && pieces == UINT64_MAX; }
};

// One transfer's. Lives on the stack (40 KiB); one thread.
class Mover {
 public:
  Mover(Peer& peer, Direction direction, const Pieces& pieces, Cursor from)
      : peer_(peer),
        direction_(direction),
        pieces_(pieces),
        cursor_(from),
        flushed_(from),
        vector_(peer.process(), direction) {}

  // Moves at most so much; checks each piece against what is registered when it comes to it.
  // Neither end is touched any more when it returns. kNotFound: a piece is not registered, and
  // those before it were moved.
  Status move(Share share);
  // All of it, also what has to be mapped first. Nothing is touched while that waits.
  Status move_all();
  // When move() has come to library memory that must be mapped before it is called again; else 0.
  std::uint32_t wanted_slice() const { return located_.wanted_slice; }
  // Whether move() has failed because the peer has not registered a piece. It may be called again.
  bool is_refused() const { return is_refused_; }
  // The next piece, or the one that failed.
  const Cursor& cursor() const { return cursor_; }
  bool is_done() const { return cursor_.piece >= pieces_.count(); }

 private:
  Status move_block(Share& share);
  Status move_piece(Piece piece, std::byte* mapped);
  [[gnu::cold]] Status explain(const CopyFault& fault, const Piece& piece,
                               const std::byte* mapped) const;
  Status name_piece(const Status& status) const;
  Status flush();
  Status check_peer();

  Peer& peer_;
  const Direction direction_;
  const Pieces& pieces_;
  Cursor cursor_;
  Cursor flushed_;  // where what the vector holds begins
  VectorCopy vector_;
  Located located_;
  bool is_refused_ = false;
  std::array<Piece, Located::kMost> block_;
};

}  // namespace memspan::transfer
