// SPDX-License-Identifier: Apache-2.0
// What the parts of the store's state give back: answers, each with the session it goes to.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/wire.h"

namespace memspan {

// A value.
struct StoreOutgoing {
  SessionId to = 0;
  StoreAnswer answer;
};
using StoreAnswers = std::vector<StoreOutgoing>;

inline StoreAnswer refuse(std::uint64_t request, Code code, std::string why) {
  return {.id = request, .code = code, .message = std::move(why)};
}

// What everybody gets of a meeting of `size` members; kInvalidArgument when that is too much,
// kOutOfMemory when the process has no memory for it.
StoreAnswer all_parts(const std::vector<std::string_view>& parts, std::uint32_t size);

// "2 of 5 members did not come: rank 1, 4". Names the first few only: a group may be large, and
// each member that gives up asks.
template <typename Part>
std::string missing_ranks(std::uint32_t size, const std::map<int, Part>& came) {
  constexpr std::size_t kNamed = 16;
  const std::size_t missing = size - came.size();
  std::string text =
      std::to_string(missing) + " of " + std::to_string(size) + " members did not come: rank ";
  std::size_t named = 0;
  for (int rank = 0; named < kNamed && named < missing; ++rank)
    if (!came.contains(rank)) text += (named++ == 0 ? "" : ", ") + std::to_string(rank);
  if (missing > named) text += " and " + std::to_string(missing - named) + " more";
  return text;
}

}  // namespace memspan
