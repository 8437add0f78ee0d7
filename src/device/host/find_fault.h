// SPDX-License-Identifier: Apache-2.0
// Whether there is memory of this process where something is to be read or written that cannot say
// whose mistake it is when there is none: a carrier, for one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "device/host/guarded_copy.h"

namespace memspan {

enum class MemoryAccess { kRead, kWrite };

// Touches every page and changes nothing. The fault that a copy would meet, or none.
std::optional<CopyFault> find_fault(std::byte* begin, std::uint64_t bytes, MemoryAccess access);

}  // namespace memspan
