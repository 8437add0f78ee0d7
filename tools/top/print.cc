// SPDX-License-Identifier: Apache-2.0
#include "top/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/environment.h"
#include "json/json.h"

namespace memspan::top {
namespace {

// 1234567 as "1.23M".
std::string short_number(double value) {
  constexpr std::string_view kUnits = " kMGTPE";
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}{}", value, value < 10 ? 2 : value < 100 ? 1 : 0, kUnits[unit]);
}

std::string memory_of(const MemberSeen& member) {
  if (member.memory_bytes == 0) return "-";
  return fmt::format("{}/{}", format_size(member.memory_used), format_size(member.memory_bytes));
}

// "shmem_barrier_all for PE 1, 2.3 s". If that is too long, the call's name is cut off.
std::string wait_of(const Row& row, std::size_t room) {
  if (row.counters.waiting.empty()) return "";
  const WaitSeen& wait = row.counters.waiting.front();
  const std::string whom =
      wait.awaited == kNobodyNamed ? "" : fmt::format(" for PE {}", wait.awaited);
  const std::string rest =
      fmt::format("{}, {:.1f} s", whom, static_cast<double>(wait.nanoseconds) * 1e-9);
  constexpr std::string_view kCut = "...";
  if (wait.call.size() + rest.size() <= room) return wait.call + rest;
  const std::size_t needed = rest.size() + kCut.size();
  return fmt::format("{}{}{}", wait.call.substr(0, room > needed ? room - needed : 0), kCut, rest);
}

std::string heading_of(const Group& group) {
  switch (group.kind) {
    case MemberKind::kJob:
      return fmt::format("{}: {} of {} members seen here", name_of(group), group.seen, group.size);
    case MemberKind::kPool:
      return fmt::format("{}: {} member{} seen here (room for {})", name_of(group), group.seen,
                         group.seen == 1 ? "" : "s", group.size);
    case MemberKind::kEndpoint:
    case MemberKind::kNone:
      break;
  }
  return name_of(group);
}

// In the order of a line; the wait of a process follows them.
enum class Column { kRank, kProcess, kCommand, kState, kMemory, kCalls, kBytes, kWaits };

struct Shape {
  Column column;
  std::string_view heading;
  std::string_view heading_of_totals;
  int width;  // below 0: to the left, and cut off
};

constexpr std::array<Shape, 8> kShapes{{
    {Column::kRank, "RANK", "RANK", 6},
    {Column::kProcess, "PID", "PID", 8},
    {Column::kCommand, "COMMAND", "COMMAND", -15},
    {Column::kState, "STATE", "STATE", -8},
    {Column::kMemory, "MEMORY", "MEMORY", 21},
    {Column::kCalls, "CALLS/s", "CALLS", 8},
    {Column::kBytes, "BYTES/s", "BYTES", 8},
    {Column::kWaits, "WAIT", "WAITED", 7},
}};

std::string padded(std::string_view text, int width) {
  if (width < 0) return fmt::format("{:<{}.{}} ", text, -width, -width);
  return fmt::format("{:>{}} ", text, width);
}

// "shmem_signal_wait_until for PE 123, 1234.5 s", and a little more.
constexpr std::size_t kRoomForWaits = 46;

std::string cell_of(const Row& row, Column column, Measure measure) {
  const std::optional<Amounts> amounts = amounts_of(row, measure);
  switch (column) {
    case Column::kRank:
      return name_of(row);
    case Column::kProcess:
      return row.process == 0 ? "-" : std::to_string(row.process);
    case Column::kCommand:
      return row.command;
    case Column::kState:
      return row.state;
    case Column::kMemory:
      return memory_of(row.member);
    case Column::kCalls:
      return amounts ? short_number(amounts->calls) : "-";
    case Column::kBytes:
      return amounts ? short_number(amounts->bytes) : "-";
    case Column::kWaits:
      break;
  }
  if (!amounts) return "-";
  if (measure == Measure::kRates) return fmt::format("{:.0f}%", amounts->waits * 100);
  return fmt::format("{:.{}f} s", amounts->waits, amounts->waits < 100 ? 1 : 0);
}

// Those that there is room for, from the most important on.
class Layout {
 public:
  Layout(Order order, std::size_t width) : width_(width) {
    const std::array<Column, 9> wanted{Column::kRank,    Column::kProcess, Column::kState,
                                       sorted_by(order), Column::kWaits,   Column::kCalls,
                                       Column::kBytes,   Column::kMemory,  Column::kCommand};
    for (const Column column : wanted) {
      if (has(column)) continue;
      const auto more = static_cast<std::size_t>(std::abs(shape_of(column).width)) + 1;
      const bool is_least = columns_.size() < 3;
      if (!is_least && used_ + more + kRoomForWaits > width) break;
      columns_.push_back(column);
      used_ += more;
    }
  }

  std::string heading(Measure measure) const {
    std::string line;
    for (const Shape& shape : kShapes)
      if (has(shape.column))
        line += padded(measure == Measure::kRates ? shape.heading : shape.heading_of_totals,
                       shape.width);
    return line + "WAITS IN";
  }
  std::string line_of(const Row& row, Measure measure) const {
    std::string line;
    for (const Shape& shape : kShapes)
      if (has(shape.column)) line += padded(cell_of(row, shape.column, measure), shape.width);
    return line + wait_of(row, width_ - std::min(width_, used_));
  }

 private:
  static Column sorted_by(Order order) {
    switch (order) {
      case Order::kCalls:
        return Column::kCalls;
      case Order::kBytes:
        return Column::kBytes;
      case Order::kWaits:
        return Column::kWaits;
      case Order::kRank:
        break;
    }
    return Column::kRank;
  }
  static const Shape& shape_of(Column column) { return kShapes[static_cast<std::size_t>(column)]; }
  bool has(Column column) const {
    return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
  }

  const std::size_t width_;
  std::size_t used_ = 0;
  std::vector<Column> columns_;
};

// With so many digits behind the point as mean something.
double rounded(double value, double digits) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}

json::Value json_of_wait(const WaitSeen& wait) {
  json::Value value;
  value.set("thread", wait.thread).set("call", wait.call);
  value.set("for", wait.awaited == kNobodyNamed ? json::Value() : json::Value(wait.awaited));
  return value.set("seconds", rounded(static_cast<double>(wait.nanoseconds) * 1e-9, 6));
}

json::Value json_of_calls(const CountersSeen& seen) {
  json::Value calls;
  for (std::size_t kind = 0; kind < kCallKinds; ++kind) {
    json::Value count;
    count.set("calls", seen.calls[kind].calls).set("bytes", seen.calls[kind].bytes);
    calls.set(std::string(memspan::name_of(static_cast<CallKind>(kind))), std::move(count));
  }
  return calls;
}

template <typename Things, typename ToJson>
json::Value json_of_all(const Things& things, ToJson to_json) {
  json::Value::Array all;
  for (const auto& thing : things) all.push_back(to_json(thing));
  return all;
}

json::Value json_of_row(const Row& row) {
  json::Value value;
  value.set("rank", row.member.rank);
  value.set("pid", row.process == 0 ? json::Value() : json::Value(row.process));
  value.set("command", row.command).set("state", row.state);
  value.set("memory_bytes", row.member.memory_bytes).set("memory_used", row.member.memory_used);
  if (row.counters.process != 0) {
    const CountersSeen& seen = row.counters;
    value.set("counted", seen.counts_calls).set("calls", json_of_calls(seen));
    value.set("waits", seen.waits);
    value.set("waited_seconds", rounded(waited_seconds(seen), 6));
    value.set("threads", seen.threads).set("uncounted_threads", seen.uncounted_threads);
    value.set("waiting", json_of_all(seen.waiting, json_of_wait));
  }
  if (row.rates) {
    value.set("calls_per_second", rounded(row.rates->calls, 1));
    value.set("bytes_per_second", rounded(row.rates->bytes, 1));
    value.set("waiting_share", rounded(row.rates->waits, 4));
  }
  return value;
}

json::Value json_of_group(const Group& group) {
  json::Value value;
  value.set("kind", memspan::name_of(group.kind)).set("name", group.name).set("size", group.size);
  return value.set("members", json_of_all(group.rows, json_of_row));
}

// Whether any row counts calls.
bool counts_calls(const View& view) {
  for (const Group& group : view.groups)
    for (const Row& row : group.rows)
      if (row.counters.counts_calls) return true;
  return false;
}

}  // namespace

Table table_of(const View& view, Order order, std::size_t width) {
  Table table{.head = {fmt::format("memspan-top on {}, sorted by {}", view.host, name_of(order))},
              .body = {}};
  if (view.groups.empty()) {
    table.body.push_back(view.nothing.message() + (view.others.empty() ? "" : "; there are:"));
    for (const std::string& other : view.others) table.body.push_back("  " + other);
    return table;
  }
  const Layout layout(order, width);
  if (!counts_calls(view))
    table.head.emplace_back(
        "MEMSPAN_COUNTERS=1 counts calls, bytes and time in waits; it is not set here");
  table.head.push_back(layout.heading(view.measure));
  for (const Group& group : view.groups) {
    table.body.emplace_back("");
    table.body.push_back(heading_of(group));
    for (const Row& row : group.rows) table.body.push_back(layout.line_of(row, view.measure));
  }
  return table;
}

std::string json_of(const View& view) {
  json::Value value;
  return value.set("time", rounded(view.time, 3))
      .set("host", view.host)
      .set("groups", json_of_all(view.groups, json_of_group))
      .compact();
}

}  // namespace memspan::top
