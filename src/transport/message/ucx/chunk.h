// SPDX-License-Identifier: Apache-2.0
// A connection over UCX is a stream of chunks in each direction.
//
//   chunk: kind (4 bytes), value (4 bytes), and for data `value` bytes of payload
//
//   open     the listener's first chunk: the connection is ready
//   data     bytes of the ByteStream; at most kWindow of them without a credit
//   large    the next `value` bytes of the ByteStream, sent by rendezvous (rendezvous.h)
//   credit   the receiver's caller took `value` bytes
//   end      nothing follows; the peer answers with an end when all sent bytes have arrived
#pragma once

#include <cstddef>
#include <cstdint>

namespace memspan::ucx {

inline constexpr std::uint32_t kWindow = 4 << 20;
inline constexpr std::uint32_t kMostInChunk = 256 << 10;
// A rendezvous takes two network round trips, about 4 us on a fast network. At 200 Gbit/s this
// many bytes take 2.6 us, and several are in flight at a time.
inline constexpr std::uint32_t kLargeFrom = 64 << 10;

enum class ChunkKind : std::uint32_t {
  kOpen = 0x6d73'7001,
  kData,
  kCredit,
  kEnd,
  kLarge,
};
struct Chunk {
  ChunkKind kind;
  std::uint32_t value;
};
inline constexpr std::size_t kChunkBytes = 8;
static_assert(sizeof(Chunk) == kChunkBytes);

}  // namespace memspan::ucx
