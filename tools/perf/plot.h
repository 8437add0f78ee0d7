// SPDX-License-Identifier: Apache-2.0
// Plots as SVG: lines over sizes with logarithmic axes, and rows of percentiles. Values show when
// the pointer rests on a point. Colours follow the reader's light or dark scheme.
#pragma once

#include <string>
#include <vector>

namespace memspan::perf {

// The unit of an axis's numbers.
enum class Unit { kBytes, kTime, kSpeed, kRatio };
// "64 KiB", "1.2 us", "3.4 GB/s", "0.98"; times are nanoseconds, speeds bytes in one.
std::string unit_text(Unit unit, double value);

// How a line looks: of the run, of the other run, of the machine without memspan.
enum class Look { kHere, kThere, kBaseline };

// A value. Points have x and y above 0.
struct Series {
  struct Point {
    double x;
    double y;
    double high = 0;  // of the band from y to here; 0: none
  };
  std::string name;
  Look look = Look::kHere;
  std::vector<Point> points = {};
};

struct LinePlot {
  std::string title;
  std::string x_label;
  std::string y_label;
  Unit x = Unit::kBytes;
  Unit y = Unit::kTime;
  std::vector<Series> series = {};
};

// A row: a dot at the median, a line to p99, a mark at p99.9, and one at the baseline.
struct DotRow {
  std::string name;
  Look look = Look::kHere;
  double p50 = 0;
  double p99 = 0;       // 0: too few samples to say
  double p999 = 0;      // the same
  double baseline = 0;  // 0: none
};

struct DotPlot {
  std::string title;
  std::string x_label;
  std::string baseline_name;
  std::vector<DotRow> rows = {};
};

// For a page that has plot_style(), or as a file of its own.
enum class Place { kPage, kFile };
std::string to_svg(const LinePlot& plot, Place place);
std::string to_svg(const DotPlot& plot, Place place);

// The style sheet of plots.
std::string plot_style();
// For texts in HTML and SVG.
std::string escaped(std::string_view text);

}  // namespace memspan::perf
