// SPDX-License-Identifier: Apache-2.0
// The progress of a measurement: one line of a terminal that is written over; nothing if stderr is
// not a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace memspan::perf {

// One thread.
class Progress {
 public:
  // So many rows are expected.
  explicit Progress(std::size_t rows);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // A row has come, of this test and round.
  void row(const std::string& what);

 private:
  void clear() const;
  const bool is_shown_;
  const std::size_t rows_;
  const double begin_;
  std::size_t done_ = 0;
};

}  // namespace memspan::perf
