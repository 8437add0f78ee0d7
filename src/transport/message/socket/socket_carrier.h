// SPDX-License-Identifier: Apache-2.0
// Streams over plain sockets: abstract Unix sockets between processes of one network namespace,
// otherwise TCP. An address names its kind ("unix:NAME", "tcp:HOST:PORT"), so either kind connects
// to both.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/message/carrier.h"

namespace memspan::inline transport {

struct SocketOptions {
  enum class Family { kUnix, kTcp } family = Family::kUnix;
  // For TCP: the numeric address to which the listener binds and peers connect, and no other.
  std::string host = "127.0.0.1";
};

// A peer is near if the round trip of the connection's first packets is at most this. For the bytes
// in flight to others the kernel decides.
inline constexpr std::uint32_t kNearUs = 250;
// The kernel lets bytes in flight grow to megabytes, even if a round trip takes microseconds. Then
// every byte leaves the processor's caches between the two ends. So many stay in them, and are
// enough for 10 Gbit/s at a round trip of 200 us and for 100 Gbit/s at 20 us.
inline constexpr std::size_t kNearSendBuffer = std::size_t{256} << 10;

std::unique_ptr<Carrier> make_socket_carrier(const SocketOptions& options);

}  // namespace memspan::inline transport
