// SPDX-License-Identifier: Apache-2.0
#include "memory/address_plan.h"

#include <algorithm>
#include <bit>

namespace memspan {

std::uint64_t heap_file_stride(std::uint64_t memory_bytes) {
  constexpr std::uint64_t kLeast = std::uint64_t{4} << 30;
  return std::bit_ceil(std::max(memory_bytes + kInternalBytes, kLeast));
}

}  // namespace memspan
