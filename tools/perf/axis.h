// SPDX-License-Identifier: Apache-2.0
// A logarithmic axis and its ticks.
#pragma once

#include <string>
#include <vector>

namespace memspan::perf {

// A value.
struct Tick {
  double value;
  bool has_label;
};

// A value. From the smallest to the largest of some numbers above 0, a little wider.
class LogAxis {
 public:
  // `from` and `to` are the ends of the axis in the drawing. `base` 2: ticks are powers of two, for
  // sizes; 10: powers of ten, with 2 and 5 between them if they fit.
  LogAxis(const std::vector<double>& values, double from, double to, double base);

  double place(double value) const;
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  void make_binary_ticks();
  void make_decimal_ticks();

  double from_;
  double to_;
  double low_;  // as logarithms
  double high_;
  std::vector<Tick> ticks_ = {};
};

// "1.00 us" -> "1 us", "1.50 us" -> "1.5 us".
std::string tidy(std::string text);

}  // namespace memspan::perf
