// SPDX-License-Identifier: Apache-2.0
#include "memory/address_plan.h"

#include <bit>

namespace memspan {

std::uint64_t heap_file_stride(std::uint64_t memory_bytes) {
  return std::bit_ceil(memory_bytes + kInternalBytes + kStaticSegmentBytes);
}

}  // namespace memspan
