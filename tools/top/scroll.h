// SPDX-License-Identifier: Apache-2.0
// Which part of a table is on the screen, and the keys that move it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "top/print.h"

namespace memspan::top {

// vi's letters and control keys; Screen also gives them for the arrow keys, PgUp and PgDn.
inline constexpr char kLineUp = 'k';
inline constexpr char kLineDown = 'j';
inline constexpr char kPageUp = 'B' & 0x1f;
inline constexpr char kPageDown = 'F' & 0x1f;

// A value.
class Scroll {
 public:
  // At most so many rows: the head, a part of the body and the number of missing rows, if any.
  std::vector<std::string> page_of(const Table& table, std::size_t rows);
  // Whether it is a key for this.
  bool take(char key);
  void to_top() { first_ = 0; }

 private:
  std::size_t first_ = 0;  // of the body's lines; page_of() keeps it within them
  std::size_t shown_ = 1;  // lines of the body on the last page
};

}  // namespace memspan::top
