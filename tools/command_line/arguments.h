// SPDX-License-Identifier: Apache-2.0
// Words as execve() and posix_spawn() take them.
#pragma once

#include <string>
#include <vector>

namespace memspan::command_line {

// Pointers into `words`, with a null at the end. `words` must not change while they are used, and
// callees must not change the texts.
inline std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace memspan::command_line
