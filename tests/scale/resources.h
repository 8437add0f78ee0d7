// SPDX-License-Identifier: Apache-2.0
// What the simulation uses of the machine.
#pragma once

#include <cstdint>

#include "core/status.h"

namespace memspan::scale {

double now_s();
// Resident bytes of this process, after what is free was given back; and the most ever.
std::uint64_t resident_bytes();
std::uint64_t most_resident_bytes();
std::uint64_t open_descriptors();
// Raises the limit of descriptors to `count`, or says why it cannot be.
Status need_descriptors(std::uint64_t count);
std::uint64_t most_descriptors();

}  // namespace memspan::scale
