// SPDX-License-Identifier: Apache-2.0
// Finds missing memory of this process before an access that cannot report whose mistake it is,
// such as that of a carrier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "device/host/guarded_copy.h"

namespace memspan {

enum class MemoryAccess { kRead, kWrite };

// Touches every page and changes nothing. Returns the fault that a copy would meet, if any.
std::optional<CopyFault> find_fault(std::byte* begin, std::uint64_t bytes, MemoryAccess access);

}  // namespace memspan
