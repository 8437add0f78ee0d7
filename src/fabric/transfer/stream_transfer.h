// SPDX-License-Identifier: Apache-2.0
// A transfer as work of a device's own stream (a cudaStream_t), piece by piece in its order:
//
//   an end is memory of the device, both are mapped here    one copy of the stream
//   the local end is, the other one is not mapped           copies of the stream from or to a
//   buffer
//                                                           here, and calls that move that
//   no end is                                               a call that moves it
//
// Calls are made by a thread of the driver, which may not use the device meanwhile: what they move
// is memory of the host.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/status.h"
#include "device/memory.h"
#include "fabric/transfer/peer.h"
#include "fabric/transfer/pieces.h"

namespace memspan::transfer {

// Where it is submitted. A value.
struct DeviceStream {
  Device* device = nullptr;
  void* stream = nullptr;
  // Moves what lies in memory of the host, and tells somebody when that fails. Called when the
  // stream comes to it, perhaps after the endpoint's end.
  std::function<void(const PieceList&)> move;
};

// Submits one transfer. Lives on the stack; one thread.
class StreamTransfer {
 public:
  StreamTransfer(Peer& peer, Direction direction, const DeviceStream& stream)
      : peer_(peer), direction_(direction), stream_(stream) {}

  // What the peer has not registered is refused at once, and nothing of the pieces' block is
  // submitted; so is what cannot be opened here. Local memory must stay until the stream is there.
  Status submit(const Pieces& pieces);

 private:
  Status resolve(std::span<const Piece> block, std::uint64_t first, ResolvedPieces& resolved);
  Status submit_piece(const Piece& piece, std::byte* mapped);
  Status submit_staged(const Piece& piece);
  Status submit_move(const Piece& piece, std::shared_ptr<std::byte[]> buffer);

  Peer& peer_;
  const Direction direction_;
  const DeviceStream& stream_;
};

}  // namespace memspan::transfer
