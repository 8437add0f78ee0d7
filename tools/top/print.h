// SPDX-License-Identifier: Apache-2.0
// A view as text: lines of a table, or JSON in one line.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "top/view.h"

namespace memspan::top {

struct Table {
  std::vector<std::string> head;  // what stays when the rest is scrolled
  std::vector<std::string> body;
};

inline constexpr std::size_t kAnyWidth = std::numeric_limits<std::size_t>::max();

// Leaves out the least important columns if `width` has no room for them beside a process's wait
// and its peer. A very narrow screen has to cut lines off.
Table table_of(const View& view, Order order, std::size_t width);
std::string json_of(const View& view);

}  // namespace memspan::top
