// SPDX-License-Identifier: Apache-2.0
#include "perf/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "perf/clock.h"

namespace memspan::perf {

Progress::Progress(std::size_t rows)
    : is_shown_(::isatty(STDERR_FILENO) == 1),
      rows_(std::max<std::size_t>(rows, 1)),
      begin_(now_ns()) {}

Progress::~Progress() {
  if (is_shown_) clear();
}

void Progress::clear() const {
  std::fputs("\r\x1b[K", stderr);  // erases the line
}

void Progress::row(const std::string& what) {
  ++done_;
  if (!is_shown_) return;
  const std::size_t done = std::min(done_, rows_);
  const double passed_s = (now_ns() - begin_) / 1e9;
  const double left_s = passed_s * static_cast<double>(rows_ - done) / static_cast<double>(done);
  clear();
  fmt::print(stderr, "{:3}%  {} of {}, about {:.0f} s left: {}", 100 * done / rows_, done, rows_,
             left_s, what);
  std::fflush(stderr);
}

}  // namespace memspan::perf
