// SPDX-License-Identifier: Apache-2.0
// The terminal while memspan-top runs on it: its other screen, keys one at a time, and everything
// as it was at the end, also when a signal ends us.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/status.h"

namespace memspan::top {

struct Size {
  std::size_t rows;
  std::size_t columns;
};

// One at a time in a process; one thread.
class Screen : NotCopyable {
 public:
  // kInvalidArgument when stdin or stdout is not a terminal.
  static Status check();
  Screen();
  ~Screen();

  Size size() const;
  // As many lines and columns as there is room for.
  void show(const std::vector<std::string>& lines);
  // The next key; arrow keys, PgUp and PgDn as those of scroll.h. 0 when none came in time or the
  // size has changed, 'q' when we are asked to end.
  char key(Deadline deadline);
};

}  // namespace memspan::top
