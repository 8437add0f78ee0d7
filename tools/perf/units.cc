// SPDX-License-Identifier: Apache-2.0
#include "perf/units.h"

#include <fmt/format.h>

#include <cmath>

namespace memspan::perf {
namespace {

// Three digits: "1.23", "12.3", "123".
std::string three(double value) {
  if (value >= 99.95) return fmt::format("{:.0f}", value);
  return value >= 9.995 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

}  // namespace

std::string time_text(double ns) {
  if (ns < 999.5) return three(ns) + " ns";
  if (ns < 999.5e3) return three(ns / 1e3) + " µs";
  if (ns < 999.5e6) return three(ns / 1e6) + " ms";
  return three(ns / 1e9) + " s";
}

std::array<std::string, 5> times_of(const Summary& summary) {
  const auto of = [&](double share, double ns) {
    return summary.has(share) ? time_text(ns) : std::string("-");
  };
  return {time_text(summary.p50), of(0.9, summary.p90), of(0.99, summary.p99),
          of(0.999, summary.p999), time_text(summary.most)};
}

std::string bytes_text(std::size_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  if (bytes == 0) return "-";
  std::size_t unit = 0;
  auto value = static_cast<double>(bytes);
  while (value >= 1024 && unit < 3) {
    value /= 1024;
    ++unit;
  }
  return value == std::floor(value) ? fmt::format("{:.0f} {}", value, kUnits[unit])
                                    : fmt::format("{} {}", three(value), kUnits[unit]);
}

std::string speed_text(double bytes_a_ns) {
  if (bytes_a_ns < 0.9995e-3) return three(bytes_a_ns * 1e6) + " kB/s";
  return bytes_a_ns < 0.9995 ? three(bytes_a_ns * 1e3) + " MB/s" : three(bytes_a_ns) + " GB/s";
}

std::string rate_text(double ns) {
  const double millions = 1e3 / ns;
  return millions < 0.9995 ? three(millions * 1e3) + " k/s" : three(millions) + " M/s";
}

std::string figure_text(const Test& test, std::size_t bytes, double ns) {
  if (ns <= 0) return "-";
  switch (test.figure) {
    case Figure::kLatency:
      return time_text(ns);
    case Figure::kBandwidth:
      return speed_text(static_cast<double>(bytes) / ns);
    case Figure::kRate:
      break;
  }
  return rate_text(ns);
}

}  // namespace memspan::perf
