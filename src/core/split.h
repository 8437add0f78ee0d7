// SPDX-License-Identifier: Apache-2.0
// Splits lists in texts, as "a,b".
#pragma once

#include <string_view>
#include <vector>

namespace memspan {

// The parts between the separators, one more than there are; any may be empty. They point into the
// text.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(separator); end != std::string_view::npos;
       end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

}  // namespace memspan
