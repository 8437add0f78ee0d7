// SPDX-License-Identifier: Apache-2.0
// A PE's message to all others at join, if some of them are reached by links: its address, its
// regions, and the values that must be equal everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "transport/link.h"

namespace memspan {

// A value.
struct Introduction {
  std::int32_t process = 0;
  std::uint64_t heap_bytes = 0;
  std::uint32_t commit_mode = 0;
  std::uint64_t program = 0;  // StaticSegment::identity; 0: its variables are not symmetric
  std::string address;        // MessageTransport::address()
  RemoteRegion heap;
  std::optional<RemoteRegion> data;  // the static symmetric segment

  std::string encode() const;
  static Result<Introduction> decode(std::string_view bytes);
};

}  // namespace memspan
