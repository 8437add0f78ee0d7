// SPDX-License-Identifier: Apache-2.0
#include "top/print.h"

#include <fmt/format.h>

#include <cmath>
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

// "shmem_barrier_all for PE 1, 2.3 s"
std::string wait_of(const Row& row) {
  if (row.counters.waiting.empty()) return "";
  const WaitSeen& wait = row.counters.waiting.front();
  const std::string whom =
      wait.awaited == kNobodyNamed ? "" : fmt::format(" for PE {}", wait.awaited);
  return fmt::format("{}{}, {:.1f} s", wait.call, whom,
                     static_cast<double>(wait.nanoseconds) * 1e-9);
}

std::string heading_of(const Group& group) {
  if (group.kind == MemberKind::kEndpoint) return fmt::format("endpoint {}", group.name);
  return fmt::format("{} {}: {} of {} members seen here", name_of(group.kind), group.name,
                     group.seen, group.size);
}

std::string line_of(const Row& row) {
  const auto number = [&](double value) { return row.rates ? short_number(value) : "-"; };
  const Rates rates = row.rates.value_or(Rates{});
  return fmt::format("{:>6} {:>8} {:<15.15} {:<8} {:>21} {:>8} {:>8} {:>6} {}", name_of(row),
                     row.process == 0 ? "-" : std::to_string(row.process), row.command, row.state,
                     memory_of(row.member), number(rates.calls), number(rates.bytes),
                     row.rates ? fmt::format("{:.0f}%", rates.waits * 100) : "-", wait_of(row));
}

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
    value.set("waited_seconds", rounded(static_cast<double>(seen.waited_so_far_ns()) * 1e-9, 6));
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

}  // namespace

std::vector<std::string> table_of(const View& view, Order order) {
  std::vector<std::string> lines{
      fmt::format("memspan-top on {}, sorted by {}", view.host, name_of(order))};
  if (view.groups.empty())
    lines.emplace_back("no process of this user is in a job or a pool or has an endpoint");
  for (const Group& group : view.groups) {
    lines.emplace_back("");
    lines.push_back(heading_of(group));
    lines.push_back(fmt::format("{:>6} {:>8} {:<15} {:<8} {:>21} {:>8} {:>8} {:>6} {}", "RANK",
                                "PID", "COMMAND", "STATE", "MEMORY", "CALLS/s", "BYTES/s", "WAIT",
                                "WAITS IN"));
    for (const Row& row : group.rows) lines.push_back(line_of(row));
  }
  return lines;
}

std::string json_of(const View& view) {
  json::Value value;
  return value.set("host", view.host)
      .set("groups", json_of_all(view.groups, json_of_group))
      .compact();
}

}  // namespace memspan::top
