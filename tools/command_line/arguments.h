// SPDX-License-Identifier: Apache-2.0
// Words as execve() and posix_spawn() take them.
#pragma once

#include <string>
#include <vector>

namespace memspan::command_line {

// Pointers into `words`, which must stay as they are meanwhile, and a null at the end. What takes
// them changes nothing.
inline std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace memspan::command_line
