// SPDX-License-Identifier: Apache-2.0
// Parts of the recipes' keys and values: unique numbers, and keys that end in a rank.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/environment.h"
#include "core/random.h"
#include "core/status.h"

namespace memspan {

inline std::uint64_t new_nonce() {
  return std::strtoull(random_hex(8).c_str(), nullptr, 16) | 1;  // 0 means none
}

// With leading zeros, so that keys are listed in the order of the ranks.
inline std::string rank_key(std::string_view prefix, int rank) {
  return fmt::format("{}{:05}", prefix, rank);
}

inline Result<int> rank_in_key(std::string_view key, std::string_view prefix) {
  auto rank = parse_integer("a rank in a key", key.substr(prefix.size()), 0, 65535);
  if (!rank.is_ok()) return rank.status();
  return static_cast<int>(*rank);
}

}  // namespace memspan
