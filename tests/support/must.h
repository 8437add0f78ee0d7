// SPDX-License-Identifier: Apache-2.0
// What a call gave that a test cannot go on without.
#pragma once

#include <stdexcept>
#include <utility>

#include "core/status.h"

namespace memspan {

// Ends the test with what the call says of its failure.
template <typename T>
T must(Result<T> result) {
  if (!result.is_ok()) throw std::runtime_error(result.status().to_string());
  return std::move(result).value();
}

}  // namespace memspan
