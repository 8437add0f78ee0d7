// SPDX-License-Identifier: Apache-2.0
// Unpredictable bytes from the kernel, for names and secrets that others must not guess.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace memspan {

std::uint64_t random_number();
// `bytes` random bytes as 2 * bytes lower-case hexadecimal digits.
std::string random_hex(std::size_t bytes);

}  // namespace memspan
