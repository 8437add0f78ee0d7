// SPDX-License-Identifier: Apache-2.0
// Bytes as lower-case hexadecimal digits, for places that carry nothing but plain words.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace memspan {

std::string to_hex(std::string_view bytes);
// nullopt for a text that to_hex() does not make.
std::optional<std::string> from_hex(std::string_view text);

}  // namespace memspan
