// SPDX-License-Identifier: Apache-2.0
#include "perf/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "perf/axis.h"
#include "perf/units.h"

namespace memspan::perf {
namespace {

constexpr double kWidth = 640;
constexpr double kHeight = 380;
constexpr double kLeft = 78;
constexpr double kRight = 18;
constexpr double kTop = 62;
constexpr double kBottom = 50;
constexpr double kLegendGlyph = 26;
constexpr double kLetter = 6.6;  // about the width of one, at 12 px

std::string_view look_class(Look look) {
  switch (look) {
    case Look::kHere:
      return "here";
    case Look::kThere:
      return "there";
    case Look::kBaseline:
      break;
  }
  return "baseline";
}

std::string text_at(double x, double y, std::string_view classes, std::string_view anchor,
                    std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n",
                     x, y, classes, anchor, escaped(text));
}

std::string line_at(double x1, double y1, double x2, double y2, std::string_view classes) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
      y2, classes);
}

std::string begin_svg(double height, std::string_view title, Place place) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"{}\"{}>\n",
      kWidth, height, escaped(title),
      place == Place::kFile ? fmt::format(" width=\"{}\" height=\"{}\"", kWidth, height) : "");
  if (place == Place::kFile)
    svg += fmt::format("<style>{}</style>\n<rect width=\"{}\" height=\"{}\" class=\"paper\"/>\n",
                       plot_style(), kWidth, height);
  return svg + text_at(kLeft, 22, "title", "start", title);
}

struct LegendEntry {
  std::string name;
  Look look;
};

std::string legend(const std::vector<LegendEntry>& entries, double y) {
  std::string svg;
  double x = kLeft;
  for (const LegendEntry& entry : entries) {
    svg += line_at(x, y - 4, x + kLegendGlyph - 6, y - 4,
                   fmt::format("line {}", look_class(entry.look)));
    svg += text_at(x + kLegendGlyph, y, "label", "start", entry.name);
    x += kLegendGlyph + kLetter * static_cast<double>(entry.name.size()) + 18;
  }
  return svg;
}

std::string grid_x(const LogAxis& axis, Unit unit, double bottom) {
  std::string svg;
  for (const Tick& tick : axis.ticks()) {
    const double x = axis.place(tick.value);
    svg += line_at(x, kTop, x, bottom, "grid");
    if (tick.has_label)
      svg += text_at(x, bottom + 17, "tick", "middle", unit_text(unit, tick.value));
  }
  return svg;
}

std::string grid_y(const LogAxis& axis, Unit unit) {
  std::string svg;
  for (const Tick& tick : axis.ticks()) {
    const double y = axis.place(tick.value);
    svg += line_at(kLeft, y, kWidth - kRight, y, "grid");
    if (tick.has_label)
      svg += text_at(kLeft - 7, y + 4, "tick", "end", unit_text(unit, tick.value));
  }
  return svg;
}

std::string series_svg(const Series& series, const LinePlot& plot, const LogAxis& x,
                       const LogAxis& y) {
  std::string svg;
  std::string line;
  std::string band;
  std::string back;
  for (const Series::Point& point : series.points) {
    line += fmt::format("{:.1f},{:.1f} ", x.place(point.x), y.place(point.y));
    if (point.high <= 0) continue;
    band += fmt::format("{:.1f},{:.1f} ", x.place(point.x), y.place(point.y));
    back.insert(0, fmt::format("{:.1f},{:.1f} ", x.place(point.x), y.place(point.high)));
  }
  const std::string_view look = look_class(series.look);
  if (!band.empty())
    svg += fmt::format("<polygon points=\"{}{}\" class=\"band {}\"/>\n", band, back, look);
  svg += fmt::format("<polyline points=\"{}\" class=\"line {}\"/>\n", line, look);
  for (const Series::Point& point : series.points) {
    const std::string far =
        point.high > 0 ? fmt::format(", p99 {}", unit_text(plot.y, point.high)) : "";
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" class=\"dot "
        "{}\"><title>{}</title></circle>\n",
        x.place(point.x), y.place(point.y), series.look == Look::kBaseline ? 2 : 3.2, look,
        escaped(fmt::format("{}: {} at {}{}", series.name, unit_text(plot.y, point.y),
                            unit_text(plot.x, point.x), far)));
  }
  return svg;
}

}  // namespace

std::string unit_text(Unit unit, double value) {
  switch (unit) {
    case Unit::kBytes:
      return bytes_text(static_cast<std::size_t>(std::llround(value)));
    case Unit::kTime:
      return tidy(time_text(value));
    case Unit::kSpeed:
      return tidy(speed_text(value));
    case Unit::kRatio:
      break;
  }
  return fmt::format("{:.2f}", value);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string plot_style() {
  return R"(
.plot{--ink:#1f2430;--soft:#6b7280;--rule:#e5e7eb;--paper:#ffffff;--here:#2563eb;--there:#d9730d;--baseline:#6b7280;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
@media(prefers-color-scheme:dark){.plot{--ink:#e6e9ef;--soft:#9aa3b2;--rule:#2b313c;--paper:#171b22;--here:#6ea8fe;--there:#f0a35e;--baseline:#9aa3b2}}
.plot .paper{fill:var(--paper)}.plot .title{font-size:15px;font-weight:600;fill:var(--ink)}
.plot .label{font-size:12px;fill:var(--ink)}.plot .tick{font-size:11px;fill:var(--soft)}.plot .axis{font-size:12px;fill:var(--soft)}
.plot .grid{stroke:var(--rule);stroke-width:1}.plot .frame{stroke:var(--soft);stroke-width:1;fill:none}
.plot .line{fill:none;stroke-width:2;stroke-linejoin:round}.plot .band{opacity:.16;stroke:none}.plot .whisker{stroke-width:3;opacity:.45;stroke-linecap:round}
.plot .far{stroke-width:2}
.plot .here{stroke:var(--here)}.plot .there{stroke:var(--there)}.plot .baseline{stroke:var(--baseline);stroke-dasharray:5 4}
.plot .dot{stroke:var(--paper);stroke-width:1}.plot .dot.here,.plot .band.here{fill:var(--here)}
.plot .dot.there,.plot .band.there{fill:var(--there)}.plot .dot.baseline{fill:var(--baseline);stroke-dasharray:none}
)";
}

std::string to_svg(const LinePlot& plot, Place place) {
  std::vector<double> xs;
  std::vector<double> ys;
  std::vector<LegendEntry> entries;
  for (const Series& series : plot.series) {
    entries.push_back({series.name, series.look});
    for (const Series::Point& point : series.points) {
      xs.push_back(point.x);
      ys.push_back(point.y);
      if (point.high > 0) ys.push_back(point.high);
    }
  }
  std::string svg = begin_svg(kHeight, plot.title, place) + legend(entries, 46);
  if (xs.empty()) return svg + "</svg>\n";
  const double bottom = kHeight - kBottom;
  const double steps = plot.x == Unit::kBytes ? 2 : 10;
  const LogAxis x(xs, kLeft, kWidth - kRight, steps);
  const LogAxis y(ys, bottom, kTop, 10);
  svg += grid_x(x, plot.x, bottom) + grid_y(y, plot.y);
  svg += line_at(kLeft, bottom, kWidth - kRight, bottom, "frame");
  svg += line_at(kLeft, kTop, kLeft, bottom, "frame");
  svg += text_at((kLeft + kWidth - kRight) / 2, kHeight - 12, "axis", "middle", plot.x_label);
  svg += fmt::format(
      "<text transform=\"translate(15 {:.1f}) rotate(-90)\" class=\"axis\" "
      "text-anchor=\"middle\">{}</text>\n",
      (kTop + bottom) / 2, escaped(plot.y_label));
  // The baseline is drawn below the figures.
  for (const bool is_baseline : {true, false})
    for (const Series& series : plot.series)
      if ((series.look == Look::kBaseline) == is_baseline) svg += series_svg(series, plot, x, y);
  return svg + "</svg>\n";
}

std::string to_svg(const DotPlot& plot, Place place) {
  constexpr double kRow = 30;
  constexpr double kNames = 176;
  constexpr double kValues = 84;
  const double bottom = kTop + kRow * static_cast<double>(plot.rows.size()) + 6;
  std::vector<double> values;
  bool has_baseline = false;
  bool has_there = false;
  for (const DotRow& row : plot.rows) {
    for (const double value : {row.p50, row.p99, row.p999, row.baseline})
      if (value > 0) values.push_back(value);
    has_baseline = has_baseline || row.baseline > 0;
    has_there = has_there || row.look == Look::kThere;
  }
  std::vector<LegendEntry> entries{{"p50 to p99, mark at p99.9", Look::kHere}};
  if (has_there) entries.push_back({"the other", Look::kThere});
  if (has_baseline) entries.push_back({plot.baseline_name, Look::kBaseline});
  std::string svg = begin_svg(bottom + kBottom, plot.title, place) + legend(entries, 46);
  if (values.empty()) return svg + "</svg>\n";
  const LogAxis x(values, kNames, kWidth - kValues, 10);
  svg += grid_x(x, Unit::kTime, bottom);
  svg += line_at(kNames, bottom, kWidth - kValues, bottom, "frame");
  svg += text_at((kNames + kWidth - kValues) / 2, bottom + 38, "axis", "middle", plot.x_label);
  double y = kTop + kRow / 2;
  for (const DotRow& row : plot.rows) {
    const std::string_view look = look_class(row.look);
    svg += text_at(kNames - 10, y + 4, "label", "end", row.name);
    if (row.baseline > 0)
      svg += line_at(x.place(row.baseline), y - 10, x.place(row.baseline), y + 10, "line baseline");
    std::string told = fmt::format("{}: p50 {}", row.name, time_text(row.p50));
    if (row.p99 > 0) {
      svg += line_at(x.place(row.p50), y, x.place(row.p99), y, fmt::format("whisker {}", look));
      told += fmt::format(", p99 {}", time_text(row.p99));
    }
    if (row.p999 > 0) {
      svg +=
          line_at(x.place(row.p999), y - 5, x.place(row.p999), y + 5, fmt::format("far {}", look));
      told += fmt::format(", p99.9 {}", time_text(row.p999));
    }
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" class=\"dot {}\"><title>{}</title></circle>\n",
        x.place(row.p50), y, look, escaped(told));
    svg += text_at(kWidth - kValues + 10, y + 4, "label", "start", time_text(row.p50));
    y += kRow;
  }
  return svg + "</svg>\n";
}

}  // namespace memspan::perf
