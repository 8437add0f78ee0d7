// SPDX-License-Identifier: Apache-2.0
// A transfer as work of a device's own stream (a cudaStream_t), piece by piece in its order:
//
//   one end is device memory, both are mapped here    one copy of the stream
//   the local end is, the other one is not mapped     the device's copies in parts, and calls that
//                                                     move each part
//   no end is device memory                           a call that moves it
//
// A thread of the driver makes the calls. It may not use the device in them, so they move memory of
// the host.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/status.h"
#include "device/memory.h"
#include "fabric/transfer/peer.h"
#include "fabric/transfer/pieces.h"

namespace memspan::transfer {

// The stream that gets the work. A value.
struct DeviceStream {
  Device* device = nullptr;
  void* stream = nullptr;
  // Moves memory of the host, and reports a failure. Called when the stream reaches it, perhaps
  // after the endpoint's end.
  std::function<void(const PieceList&)> move;
};

// Submits one transfer. Lives on the stack; one thread.
class StreamTransfer {
 public:
  StreamTransfer(Peer& peer, Direction direction, const DeviceStream& stream)
      : peer_(peer), direction_(direction), stream_(stream) {}

  // Memory that the peer has not registered, or that cannot be opened here, is refused at once, and
  // then no piece of its block is submitted. Local memory must stay until the stream has used it.
  Status submit(const Pieces& pieces);

 private:
  Status resolve(std::span<const Piece> block, std::uint64_t first, ResolvedPieces& resolved);
  Status submit_piece(const Piece& piece, std::byte* mapped);

  Peer& peer_;
  const Direction direction_;
  const DeviceStream& stream_;
};

}  // namespace memspan::transfer
