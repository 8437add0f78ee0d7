// SPDX-License-Identifier: Apache-2.0
// Unpredictable bytes from the kernel, for names and secrets that others must not guess.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace memspan::inline core {

// Bytes as lower-case hexadecimal digits, for places that carry nothing but plain words.
std::string to_hex(std::string_view bytes);
// nullopt for a text that to_hex() does not make.
std::optional<std::string> from_hex(std::string_view text);

std::uint64_t random_number();
// `bytes` random bytes, at most 256, as 2 * bytes lower-case hexadecimal digits.
std::string random_hex(std::size_t bytes);

}  // namespace memspan::inline core
