// SPDX-License-Identifier: Apache-2.0
#include "top/scroll.h"

#include <fmt/format.h>

#include <algorithm>

namespace memspan::top {
namespace {

std::string missing(std::size_t above, std::size_t below) {
  if (below == 0) return fmt::format("... {} more above", above);
  if (above == 0) return fmt::format("... {} more below (arrow keys, PgUp, PgDn, j, k)", below);
  return fmt::format("... {} more below, {} above", below, above);
}

}  // namespace

std::vector<std::string> Scroll::page_of(const Table& table, std::size_t rows) {
  std::vector<std::string> lines = table.head;
  const std::size_t count = table.body.size();
  const std::size_t room = rows > lines.size() ? rows - lines.size() : 0;
  const bool is_all = count <= room;
  // The last row says what is missing.
  shown_ = is_all ? count : std::max<std::size_t>(room, 2) - 1;
  first_ = std::min(first_, count - std::min(count, shown_));
  for (std::size_t i = first_; i < std::min(count, first_ + shown_); ++i)
    lines.push_back(table.body[i]);
  if (!is_all) lines.push_back(missing(first_, count - std::min(count, first_ + shown_)));
  return lines;
}

bool Scroll::take(char key) {
  const std::size_t page = std::max<std::size_t>(shown_, 1);
  switch (key) {
    case kLineUp:
      first_ -= std::min<std::size_t>(first_, 1);
      return true;
    case kLineDown:
      ++first_;
      return true;
    case kPageUp:
      first_ -= std::min(first_, page);
      return true;
    case kPageDown:
      first_ += page;
      return true;
    default:
      return false;
  }
}

}  // namespace memspan::top
