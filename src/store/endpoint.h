// SPDX-License-Identifier: Apache-2.0
// Where a store listens: "tcp://127.0.0.1:8666", "tcp://[::1]:8666", "tcp6://[::1]:8666",
// "tcp://localhost:0" (port 0 picks a free one).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"

namespace memspan {

// A value. `host` has no brackets.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;

  // kInvalidArgument with the text and the allowed forms.
  static Result<Endpoint> parse(std::string_view url);
  // "HOST:PORT" or "[IPV6]:PORT". The failure says what is wrong with it, and not what is allowed.
  static Result<Endpoint> parse_place(std::string_view text);
  std::string to_string() const;
  // What to_string() has after tcp://.
  std::string place() const;
  bool operator==(const Endpoint&) const = default;
};

}  // namespace memspan
