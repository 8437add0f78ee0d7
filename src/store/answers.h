// SPDX-License-Identifier: Apache-2.0
// Answers that the parts of the store's state return, each with its destination session.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/collective_service.h"
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

// The answer to the `size` members of a collective. kInvalidArgument if it is too large,
// kOutOfMemory if the process has no memory for it.
StoreAnswer all_parts(const std::vector<std::string_view>& parts, std::uint32_t size);

}  // namespace memspan
