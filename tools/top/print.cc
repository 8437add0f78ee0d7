// SPDX-License-Identifier: Apache-2.0
#include "top/print.h"

#include <fmt/format.h>

#include <string_view>

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

std::string quoted(std::string_view text) {
  return json::Value(text).compact();
}

template <typename Things, typename ToText>
std::string listed(const Things& things, ToText to_text) {
  std::string text = "[";
  for (const auto& thing : things) text += (text.size() > 1 ? "," : "") + to_text(thing);
  return text + "]";
}

std::string json_of_wait(const WaitSeen& wait) {
  return fmt::format(R"({{"thread":{},"call":{},"for":{},"seconds":{:.6f}}})", wait.thread,
                     quoted(wait.call),
                     wait.awaited == kNobodyNamed ? "null" : std::to_string(wait.awaited),
                     static_cast<double>(wait.nanoseconds) * 1e-9);
}

std::string json_of_calls(const CountersSeen& seen) {
  std::string text = "{";
  for (std::size_t kind = 0; kind < kCallKinds; ++kind)
    text += fmt::format(R"({}"{}":{{"calls":{},"bytes":{}}})", kind == 0 ? "" : ",",
                        memspan::name_of(static_cast<CallKind>(kind)), seen.calls[kind].calls,
                        seen.calls[kind].bytes);
  return text + "}";
}

std::string json_of_row(const Row& row) {
  std::string text = fmt::format(
      R"({{"rank":{},"pid":{},"command":{},"state":{},"memory_bytes":{},"memory_used":{})",
      row.member.rank, row.process == 0 ? "null" : std::to_string(row.process), quoted(row.command),
      quoted(row.state), row.member.memory_bytes, row.member.memory_used);
  if (row.counters.process != 0) {
    const CountersSeen& seen = row.counters;
    text += fmt::format(
        R"(,"counted":{},"calls":{},"waits":{},"waited_seconds":{:.6f},"threads":{},"uncounted_threads":{},"waiting":{})",
        seen.counts_calls, json_of_calls(seen), seen.waits,
        static_cast<double>(seen.waited_so_far_ns()) * 1e-9, seen.threads, seen.uncounted_threads,
        listed(seen.waiting, json_of_wait));
  }
  if (row.rates)
    text += fmt::format(
        R"(,"calls_per_second":{:.1f},"bytes_per_second":{:.1f},"waiting_share":{:.4f})",
        row.rates->calls, row.rates->bytes, row.rates->waits);
  return text + "}";
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
  return fmt::format(R"({{"host":{},"groups":{}}})", quoted(view.host),
                     listed(view.groups, [](const Group& group) {
                       return fmt::format(R"({{"kind":"{}","name":{},"size":{},"members":{}}})",
                                          memspan::name_of(group.kind), quoted(group.name),
                                          group.size, listed(group.rows, json_of_row));
                     }));
}

}  // namespace memspan::top
