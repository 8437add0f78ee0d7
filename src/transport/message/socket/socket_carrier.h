// SPDX-License-Identifier: Apache-2.0
// Streams over plain sockets: abstract Unix sockets between processes of one network namespace, TCP
// else. An address says which of the two it is ("unix:NAME", "tcp:HOST:PORT"), so either kind
// connects to both.
#pragma once

#include <memory>
#include <string>

#include "transport/message/carrier.h"

namespace memspan {

struct SocketOptions {
  enum class Family { kUnix, kTcp } family = Family::kUnix;
  // For TCP: the numeric address to listen at, which peers then connect to. It is bound to this
  // address only.
  std::string host = "127.0.0.1";
};

std::unique_ptr<Carrier> make_socket_carrier(const SocketOptions& options);

}  // namespace memspan
