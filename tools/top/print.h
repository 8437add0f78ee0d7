// SPDX-License-Identifier: Apache-2.0
// A view as text: lines of a table, or JSON in one line.
#pragma once

#include <string>
#include <vector>

#include "top/view.h"

namespace memspan::top {

// Of any width; whoever prints them on a terminal cuts them off.
std::vector<std::string> table_of(const View& view, Order order);
std::string json_of(const View& view);

}  // namespace memspan::top
