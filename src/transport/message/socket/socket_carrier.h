// SPDX-License-Identifier: Apache-2.0
// Streams over plain sockets: abstract Unix sockets between processes of one network namespace, TCP
// else. An address says which of the two it is ("unix:NAME", "tcp:HOST:PORT"), so either kind
// connects to both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "transport/message/carrier.h"

namespace memspan {

struct SocketOptions {
  enum class Family { kUnix, kTcp } family = Family::kUnix;
  // For TCP: the numeric address to listen at, which peers then connect to. It is bound to this
  // address only.
  std::string host = "127.0.0.1";
  // For TCP: bytes that a connection may have on their way; 0: as many as the kernel thinks fit.
  // Unset: kNearSendBuffer where the peer is near, else the kernel's.
  std::optional<std::size_t> send_buffer = std::nullopt;
};

// The round trip of a connection's first packets, up to which a peer is near.
inline constexpr std::uint32_t kNearUs = 250;
// The kernel lets what is on its way grow to megabytes, also where the answer to a byte comes in
// microseconds: then every byte leaves the processor's caches between the two ends. So many are
// enough for 10 Gbit/s at a round trip of 200 us and for 100 Gbit/s at 20 us, and stay in them.
inline constexpr std::size_t kNearSendBuffer = std::size_t{256} << 10;

std::unique_ptr<Carrier> make_socket_carrier(const SocketOptions& options);

}  // namespace memspan
