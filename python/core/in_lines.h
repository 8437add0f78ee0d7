// SPDX-License-Identifier: Apache-2.0
// Wraps docstrings for help().
#pragma once

#include <cstddef>
#include <string>

namespace memspan::python {

// The same words, in lines of at most 88 columns.
inline std::string in_lines(std::string text) {
  constexpr std::size_t kWidth = 88;
  std::size_t begin = 0;
  while (text.size() - begin > kWidth) {
    const std::size_t space = text.rfind(' ', begin + kWidth);
    if (space == std::string::npos || space <= begin) break;
    text[space] = '\n';
    begin = space + 1;
  }
  return text;
}

}  // namespace memspan::python
