// SPDX-License-Identifier: Apache-2.0
// The address of a store: "tcp://127.0.0.1:8666", "tcp://[::1]:8666", "tcp6://[::1]:8666",
// "tcp://localhost:0" (port 0 picks a free one).
#pragma once

#include <vector>

#include "core/clock.h"
#include "net/socket_address.h"

namespace memspan::inline net {

// A value. `host` has no brackets.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;

  // kInvalidArgument names the text and the allowed forms.
  static Result<Endpoint> parse(std::string_view url);
  // "HOST:PORT" or "[IPV6]:PORT". The failure describes the error, but not the allowed forms.
  static Result<Endpoint> parse_place(std::string_view text);
  std::string to_string() const;
  // to_string() without tcp://.
  std::string place() const;
  bool operator==(const Endpoint&) const = default;
};

// Resolves its host, with a deadline. The system's resolver has none, and waits for tens of seconds
// when the answer of a name server is lost.
//
// Returns IPv4 addresses first, so that "localhost" means 127.0.0.1 to all members. kUnavailable if
// the name is unknown or no answer came by the deadline. Then a thread is left behind that ends
// when the system's resolver gives up.
Result<std::vector<SocketAddress>> resolve(const Endpoint& endpoint, const Deadline& deadline);

}  // namespace memspan::inline net
