// SPDX-License-Identifier: Apache-2.0
// What a connection over UCX consists of: chunks in a stream, in both directions.
//
//   chunk: kind (4 bytes), value (4 bytes), and for data `value` bytes of payload
//
//   open     the listener's side, first: the connection stands
//   data     bytes of the ByteStream; at most kWindow of them without a credit
//   large    the next `value` bytes of the ByteStream, which come by rendezvous (rendezvous.h)
//   credit   `value` bytes were taken by the receiver's caller
//   end      nothing comes any more; it is answered by an end when all that was sent is here
#pragma once

#include <cstddef>
#include <cstdint>

namespace memspan::ucx {

inline constexpr std::uint32_t kWindow = 4 << 20;
inline constexpr std::uint32_t kMostInChunk = 256 << 10;
// A rendezvous takes two turns of the network, some 4 us on a quick one; at 200 Gbit/s this many
// bytes take 2.6 us, and several are on their way at a time.
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
