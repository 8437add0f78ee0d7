// SPDX-License-Identifier: Apache-2.0
// A store's answer as one frame. A server sends it in two pieces.
#pragma once

#include <string>

#include "store/wire.h"

namespace memspan {

inline std::string encode(const StoreAnswer& answer) {
  const StoreFrame frame = encode_sharing(answer);
  return frame.head + frame.value.text();
}

}  // namespace memspan
