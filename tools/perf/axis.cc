// SPDX-License-Identifier: Apache-2.0
#include "perf/axis.h"

#include <algorithm>
#include <cmath>

namespace memspan::perf {
namespace {

constexpr int kMostBinaryLabels = 9;
constexpr double kDecadesWithTwoAndFive = 3;

}  // namespace

LogAxis::LogAxis(const std::vector<double>& values, double from, double to, double base)
    : from_(from),
      to_(to),
      low_(std::log10(*std::min_element(values.begin(), values.end()))),
      high_(std::log10(*std::max_element(values.begin(), values.end()))) {
  // A single number has wide margins; else a little is enough.
  const double room = high_ - low_ < 0.01 ? 0.3 : 0.04 * (high_ - low_);
  low_ -= room;
  high_ += room;
  base == 2 ? make_binary_ticks() : make_decimal_ticks();
}

double LogAxis::place(double value) const {
  return from_ + (std::log10(value) - low_) / (high_ - low_) * (to_ - from_);
}

void LogAxis::make_binary_ticks() {
  const double step = std::log10(2.0);
  const int first = static_cast<int>(std::ceil(low_ / step));
  const int last = static_cast<int>(std::floor(high_ / step));
  const int every = std::max(1, (last - first + kMostBinaryLabels) / kMostBinaryLabels);
  for (int power = first; power <= last; power += every)
    ticks_.push_back({std::ldexp(1.0, power), true});
}

void LogAxis::make_decimal_ticks() {
  const bool is_short = high_ - low_ < kDecadesWithTwoAndFive;
  for (int power = static_cast<int>(std::floor(low_)); power <= static_cast<int>(high_) + 1;
       ++power)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10.0, power);
      const double place = std::log10(value);
      if (place < low_ || place > high_ || (factor != 1.0 && !is_short)) continue;
      ticks_.push_back({value, true});
    }
}

std::string tidy(std::string text) {
  const std::size_t blank = text.find(' ');
  const std::size_t point = text.find('.');
  if (point == std::string::npos || point > blank) return text;
  const std::size_t last = text.find_last_not_of('0', blank - 1);
  const std::size_t end = last == point ? point : last + 1;
  return text.erase(end, blank - end);
}

}  // namespace memspan::perf
