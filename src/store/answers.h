// SPDX-License-Identifier: Apache-2.0
// Answers that the parts of the store's state return, each with its destination session.
#pragma once

#include <cstdint>
#include <string>
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

}  // namespace memspan
