// SPDX-License-Identifier: Apache-2.0
// The address of a store: "tcp://127.0.0.1:8666", "tcp://[::1]:8666", "tcp6://[::1]:8666",
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

  // kInvalidArgument names the text and the allowed forms.
  static Result<Endpoint> parse(std::string_view url);
  // "HOST:PORT" or "[IPV6]:PORT". The failure describes the error, but not the allowed forms.
  static Result<Endpoint> parse_place(std::string_view text);
  std::string to_string() const;
  // to_string() without tcp://.
  std::string place() const;
  bool operator==(const Endpoint&) const = default;
};

}  // namespace memspan
